// A small application with Spring Data: where its carts are kept, and the repositories for them.

package bolide.spring.cosmos;

import com.azure.cosmos.CosmosClientBuilder;
import com.azure.spring.data.cosmos.config.AbstractCosmosConfiguration;
import com.azure.spring.data.cosmos.repository.config.EnableCosmosRepositories;
import com.azure.spring.data.cosmos.repository.config.EnableReactiveCosmosRepositories;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.context.annotation.Bean;

@SpringBootConfiguration(proxyBeanMethods = false)
@EnableCosmosRepositories
@EnableReactiveCosmosRepositories
public class Shop extends AbstractCosmosConfiguration {
    @Value("${shop.endpoint}")
    private String endpoint;

    @Value("${shop.key}")
    private String key;

    @Bean
    public CosmosClientBuilder client() {
        CosmosClientBuilder builder = new CosmosClientBuilder().endpoint(endpoint).key(key);
        return "direct".equals(System.getenv("BOLIDE_CONNECTION")) ? builder : builder.gatewayMode();
    }

    @Override
    protected String getDatabaseName() {
        return "shop";
    }
}
