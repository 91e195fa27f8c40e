// Orders that expire after 30 and after 90 days: the program of the service's documentation, every step checked with the clock
// moved.

package bolide.cosmos;

import static bolide.cosmos.Account.DAY;
import static bolide.cosmos.Account.SEVERAL_RANGES;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import org.junit.jupiter.api.Test;

class OrdersTest {
    private static final int MONTH = 60 * 60 * 24 * 30;
    private static final PartitionKey CUSTOMER = new PartitionKey("CO18009186470");

    /** An order as a program has it: without a ttl of its own the property is left out, as the service demands. */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    static final class Order {
        public String id = "SO05";
        public String customerId = "CO18009186470";
        public int value = 100;
        public Integer ttl;
        @JsonProperty("_ts")
        public Long timestamp;
    }

    @Test
    void t2T10T11T12OwnTtlChangedRemovedDefaultSetRemoved() {
        try (Account account = Account.start()) {
            CosmosContainerProperties definition = new CosmosContainerProperties("orders", "/customerId");
            definition.setDefaultTimeToLiveInSeconds(-1);
            account.database.createContainerIfNotExists(definition, ThroughputProperties.createManualThroughput(SEVERAL_RANGES));
            CosmosContainer orders = account.database.getContainer("orders");
            assertEquals(SEVERAL_RANGES, orders.readThroughput().getProperties().getManualThroughput());

            // 30 days of its own.
            livesFor(account, orders, created(orders, MONTH), MONTH);

            // Read after ten days, extended, replaced: 60 days from then on.
            created(orders, MONTH);
            account.server.advance(10 * DAY);
            Order order = read(orders);
            order.ttl = 2 * MONTH;
            livesFor(account, orders, replaced(orders, order), 2 * MONTH);

            // Its ttl turned off: the default of -1 applies, and it stays.
            created(orders, MONTH);
            order = read(orders);
            order.ttl = null;
            replaced(orders, order);
            account.server.advance(400 * DAY);
            assertEquals(200, status(orders));

            // 90 days by default: this one is older and expires at once, a new one has its 90 days.
            setDefault(orders, 90 * DAY);
            assertEquals(404, status(orders));
            livesFor(account, orders, created(orders, null), 90 * DAY);

            // No default: nothing expires any more, own ttl or not, and no expired item returns.
            setDefault(orders, null);
            assertNull(orders.read().getProperties().getDefaultTimeToLiveInSeconds());
            assertEquals(404, status(orders));
            created(orders, 5);
            account.server.advance(400 * DAY);
            assertEquals(5, read(orders).ttl);
        }
    }

    private static Order created(CosmosContainer orders, Integer ttl) {
        Order order = new Order();
        order.ttl = ttl;
        return orders.createItem(order, CUSTOMER, new CosmosItemRequestOptions()).getItem();
    }

    private static Order read(CosmosContainer orders) {
        return orders.readItem("SO05", CUSTOMER, Order.class).getItem();
    }

    private static Order replaced(CosmosContainer orders, Order order) {
        return orders.replaceItem(order, order.id, CUSTOMER, new CosmosItemRequestOptions()).getItem();
    }

    private static int status(CosmosContainer orders) {
        return Account.status(() -> read(orders));
    }

    private static void setDefault(CosmosContainer orders, Integer seconds) {
        CosmosContainerProperties definition = orders.read().getProperties();
        definition.setDefaultTimeToLiveInSeconds(seconds);
        orders.replace(definition);
    }

    private static void livesFor(Account account, CosmosContainer orders, Order order, long seconds) {
        account.server.moveTo(order.timestamp + seconds - 1);
        assertEquals(200, status(orders));
        account.server.advance(1);
        assertEquals(404, status(orders));
    }
}
