// The repository of visits.

package bolide.spring.mongo;

import java.util.List;
import org.springframework.data.mongodb.repository.Aggregation;
import org.springframework.data.mongodb.repository.MongoRepository;
import org.springframework.data.mongodb.repository.Query;
import org.springframework.data.mongodb.repository.Update;

public interface Visits extends MongoRepository<Visit, String> {
    List<Visit> findByPagesGreaterThanOrderByPagesDesc(int pages);

    @Query("{ _id: ?0 }")
    @Update("{ $inc: { pages: 1 } }")
    long turn(String id);

    @Aggregation("{ $group: { _id: null, sum: { $sum: '$pages' } } }")
    Integer pages();
}
