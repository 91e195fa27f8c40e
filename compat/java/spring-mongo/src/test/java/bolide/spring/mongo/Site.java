// A small application with Spring Data MongoDB, configured by properties alone; Spring makes the indexes.

package bolide.spring.mongo;

import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.data.mongodb.MongoDatabaseFactory;
import org.springframework.data.mongodb.MongoTransactionManager;

@SpringBootApplication(proxyBeanMethods = false)
public class Site {
    @Bean
    MongoTransactionManager transactions(MongoDatabaseFactory databases) {
        return new MongoTransactionManager(databases);
    }
}
