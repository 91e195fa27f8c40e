// The repository of notes.

package bolide.spring.cosmos;

import com.azure.spring.data.cosmos.repository.CosmosRepository;

public interface Notes extends CosmosRepository<Note, String> {}
