// The application against a server: its container is made with its TTL, and carts expire with the clock.

package bolide.spring.cosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import bolide.support.TrustStores;
import com.azure.cosmos.models.PartitionKey;
import com.azure.spring.data.cosmos.core.CosmosTemplate;
import com.azure.spring.data.cosmos.core.query.CosmosPageRequest;
import com.azure.spring.data.cosmos.exception.CosmosAccessException;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Sort;

class ShopTest {
    private static final PartitionKey ANN = new PartitionKey("ann");

    private static Server server;
    private static ConfigurableApplicationContext application;
    private static Carts carts;
    private static ReactiveCarts reactive;

    @BeforeAll
    static void start() {
        server = Server.start();
        TrustStores.use(server.trustStore());
        SpringApplication shop = new SpringApplicationBuilder(Shop.class)
            .web(WebApplicationType.NONE)
            .properties("shop.endpoint=" + server.endpoint(), "shop.key=" + Server.KEY, "logging.level.root=OFF",
                "spring.main.banner-mode=off")
            .build();
        application = shop.run();
        carts = application.getBean(Carts.class);
        reactive = application.getBean(ReactiveCarts.class);
    }

    @AfterAll
    static void stop() {
        application.close();
        server.close();
    }

    @BeforeEach
    void empty() {
        carts.deleteAll();
    }

    @Test
    void theContainerHasItsTtlAndItsThroughput() {
        var properties = application.getBean(CosmosTemplate.class).getContainerProperties("carts");
        assertEquals(3600, properties.getDefaultTimeToLiveInSeconds());
        assertEquals(List.of("/owner"), properties.getPartitionKeyDefinition().getPaths());
    }

    @Test
    void t2T9ACartExpiresAnHourAfterItsLastWrite() {
        carts.save(new Cart("1", "ann", 10, null));
        server.advance(3599);
        Cart found = carts.findById("1", ANN).orElseThrow();
        found.setTotal(20);
        carts.save(found);
        server.advance(3599);
        assertEquals(20, carts.findById("1", ANN).orElseThrow().getTotal());
        server.advance(1);
        assertTrue(carts.findById("1", ANN).isEmpty());
        assertEquals(0, carts.count());
    }

    @Test
    void t2T10ACartHasATtlOfItsOwnAndLosesItAgain() {
        carts.saveAll(List.of(new Cart("short", "ann", 1, 60), new Cart("kept", "ann", 2, -1), new Cart("usual", "ann", 3, null)));
        server.advance(60);
        assertEquals(List.of("usual", "kept"), carts.findByOwnerOrderByTotalDesc("ann").stream().map(Cart::getId).toList());
        server.advance(3540);
        assertEquals(List.of("kept"), carts.findByOwnerOrderByTotalDesc("ann").stream().map(Cart::getId).toList());
        Cart kept = carts.findById("kept", ANN).orElseThrow();
        kept.setTtl(null);
        carts.save(kept);
        server.advance(3600);
        assertEquals(0, carts.countByOwner("ann"));
    }

    @Test
    void repositoriesFindCountSumPageAndDelete() {
        carts.saveAll(IntStream.range(0, 40).mapToObj(n -> new Cart("c" + n, "owner" + n % 5, n, null)).toList());
        assertEquals(40, carts.count());
        assertEquals(8, carts.countByOwner("owner3"));
        assertEquals(List.of(38, 33, 28, 23, 18, 13, 8, 3),
            carts.findByOwnerOrderByTotalDesc("owner3").stream().map(Cart::getTotal).toList());
        assertEquals(List.of(164.0), carts.sum("owner3"));
        int seen = 0;
        Page<Cart> page = carts.findByTotalGreaterThan(9, new CosmosPageRequest(0, 7, null, Sort.by("total")));
        assertEquals(10, page.getContent().get(0).getTotal());
        for (;; page = carts.findByTotalGreaterThan(9, page.nextPageable())) {
            seen += page.getNumberOfElements();
            if (!page.hasNext()) {
                break;
            }
        }
        assertEquals(30, seen);
        carts.deleteById("c0", new PartitionKey("owner0"));
        assertFalse(carts.findById("c0", new PartitionKey("owner0")).isPresent());
    }

    @Test
    void aNoteThatWasChangedMeanwhileIsNotOverwritten() {
        Notes notes = application.getBean(Notes.class);
        application.getBean(CosmosTemplate.class).insert("notes", new Note("changed", "new"));
        Note first = notes.findById("changed").orElseThrow();
        Note second = notes.findById("changed").orElseThrow();
        first.setText("first");
        notes.save(first);
        second.setText("second");
        assertThrows(CosmosAccessException.class, () -> notes.save(second));
        assertEquals("first", notes.findById("changed").orElseThrow().getText());
    }

    @Test
    void aNoteIsSavedTheFirstTime() {
        Notes notes = application.getBean(Notes.class);
        notes.save(new Note("new", "text"));
        assertEquals("text", notes.findById("new").orElseThrow().getText());
    }

    @Test
    void theReactiveRepository() {
        reactive.saveAll(IntStream.range(0, 10).mapToObj(n -> new Cart("r" + n, "bob", n, n % 2 == 0 ? 30 : null)).toList()).blockLast();
        assertEquals(10, reactive.findByOwner("bob").count().block());
        server.advance(30);
        assertEquals(5, reactive.findByOwner("bob").count().block());
        assertEquals(5, reactive.count().block());
    }
}
