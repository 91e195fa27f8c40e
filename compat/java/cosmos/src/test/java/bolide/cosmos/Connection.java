// How the suite connects to the server: in direct mode, the client's default, and through the gateway.

package bolide.cosmos;

import com.azure.cosmos.CosmosClientBuilder;

/** How the suite connects: it runs once in direct mode, the client's default, and once by the gateway. */
final class Connection {
    static final boolean IS_DIRECT = "direct".equals(System.getenv("BOLIDE_CONNECTION"));

    private Connection() {
    }

    static CosmosClientBuilder in(CosmosClientBuilder builder) {
        return IS_DIRECT ? builder : builder.gatewayMode();
    }
}
