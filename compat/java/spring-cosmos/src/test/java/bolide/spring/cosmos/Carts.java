// The repository of carts: derived queries, a query in SQL, pages and sums.

package bolide.spring.cosmos;

import com.azure.spring.data.cosmos.repository.CosmosRepository;
import com.azure.spring.data.cosmos.repository.Query;
import java.util.List;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.repository.query.Param;

public interface Carts extends CosmosRepository<Cart, String> {
    List<Cart> findByOwnerOrderByTotalDesc(String owner);

    Page<Cart> findByTotalGreaterThan(int total, Pageable page);

    long countByOwner(String owner);

    @Query("SELECT VALUE SUM(c.total) FROM c WHERE c.owner = @owner")
    List<Double> sum(@Param("owner") String owner);
}
