// The same carts by the reactive repository.

package bolide.spring.cosmos;

import com.azure.spring.data.cosmos.repository.ReactiveCosmosRepository;
import reactor.core.publisher.Flux;

public interface ReactiveCarts extends ReactiveCosmosRepository<Cart, String> {
    Flux<Cart> findByOwner(String owner);
}
