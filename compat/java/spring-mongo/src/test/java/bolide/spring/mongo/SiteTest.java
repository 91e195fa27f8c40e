// The application against a server, by TLS with the server's root in a bundle: TTL indexes by annotation and by template,
// repositories, transactions, change streams.

package bolide.spring.mongo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import bolide.support.TrustStores;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.index.Index;
import org.springframework.data.mongodb.core.index.IndexInfo;
import org.springframework.data.mongodb.core.messaging.ChangeStreamRequest;
import org.springframework.data.mongodb.core.messaging.DefaultMessageListenerContainer;
import org.springframework.data.mongodb.core.messaging.MessageListener;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.transaction.PlatformTransactionManager;

class SiteTest {
    private static final int DAY = Server.DAY;

    private static Server server;
    private static ConfigurableApplicationContext application;
    private static Visits visits;
    private static MongoTemplate template;

    @BeforeAll
    static void start() {
        server = Server.start();
        application = new SpringApplicationBuilder(Site.class)
            .web(WebApplicationType.NONE)
            .properties(
                "spring.mongodb.uri=mongodb://localhost:" + server.mongoPort() + "/site?replicaSet=globaldb",
                "spring.mongodb.ssl.bundle=bolide",
                "spring.ssl.bundle.jks.bolide.truststore.location=file:" + server.trustStore(),
                "spring.ssl.bundle.jks.bolide.truststore.password=" + TrustStores.PASSWORD,
                "spring.ssl.bundle.jks.bolide.truststore.type=PKCS12",
                "spring.data.mongodb.auto-index-creation=true",
                "logging.level.root=OFF", "spring.main.banner-mode=off")
            .run();
        visits = application.getBean(Visits.class);
        template = application.getBean(MongoTemplate.class);
    }

    @AfterAll
    static void stop() {
        application.close();
        server.close();
    }

    @BeforeEach
    void empty() {
        visits.deleteAll();
        template.getCollection("visits").listIndexes().forEach(index -> {
            if (index.getString("name").equals("idle")) {
                template.indexOps(Visit.class).dropIndex("idle");
            }
        });
    }

    private static Instant now() {
        return Instant.ofEpochSecond(server.now());
    }

    @Test
    void t27TheIndexByAnnotationExpiresAVisitADayAfterItBegan() {
        var began = template.indexOps(Visit.class).getIndexInfo().stream().filter(index -> index.isIndexForFields(List.of("began")));
        assertEquals(Duration.ofDays(1), began.findFirst().flatMap(IndexInfo::getExpireAfter).orElseThrow());
        Instant start = now();
        visits.save(new Visit("1", start, 1, null));
        server.moveTo(start.getEpochSecond() + DAY - 1);
        assertEquals(1, visits.turn("1"));
        assertEquals(2, visits.findById("1").orElseThrow().pages());
        server.advance(1);
        assertTrue(visits.findById("1").isEmpty());
        assertEquals(0, visits.count());
    }

    @Test
    void t26AnIndexOnTheTimeOfWritingExpiresAVisitAnHourAfterItsLastWrite() {
        template.indexOps(Visit.class).createIndex(new Index("_ts", Sort.Direction.ASC).named("idle").expire(Duration.ofHours(1)));
        visits.saveAll(List.of(new Visit("1", now(), 1, null), new Visit("short", now(), 1, 60), new Visit("kept", now(), 1, -1)));
        server.advance(60);
        assertTrue(visits.findById("short").isEmpty());
        server.advance(3539);
        visits.turn("1");
        server.advance(3599);
        assertTrue(visits.existsById("1"));
        server.advance(1);
        assertEquals(List.of("kept"), visits.findAll().stream().map(Visit::id).toList());
    }

    @Test
    void repositoriesFindPageSumAndRefuse() {
        visits.saveAll(IntStream.range(0, 30).mapToObj(n -> new Visit("v" + n, now(), n, null)).toList());
        assertEquals(List.of(29, 28), visits.findByPagesGreaterThanOrderByPagesDesc(27).stream().map(Visit::pages).toList());
        assertEquals(435, visits.pages());
        var page = visits.findAll(PageRequest.of(2, 7, Sort.by("pages")));
        assertEquals(5, page.getTotalPages());
        assertEquals(14, page.getContent().get(0).pages());
        assertThrows(DuplicateKeyException.class, () -> visits.insert(new Visit("v1", now(), 1, null)));
    }

    @Test
    void aTransactionThatFailsLeavesNothing() {
        TransactionTemplate transaction = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        transaction.executeWithoutResult(status -> visits.save(new Visit("kept", now(), 1, null)));
        assertThrows(IllegalStateException.class, () -> transaction.executeWithoutResult(status -> {
            visits.save(new Visit("gone", now(), 1, null));
            throw new IllegalStateException("the caller changes its mind");
        }));
        assertEquals(List.of("kept"), visits.findAll().stream().map(Visit::id).toList());
    }

    @Test
    void t28AListenerHearsOfAnExpiry() throws InterruptedException {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        DefaultMessageListenerContainer container = new DefaultMessageListenerContainer(template);
        container.start();
        MessageListener<com.mongodb.client.model.changestream.ChangeStreamDocument<org.bson.Document>, Visit> listener =
            message -> heard.add(message.getRaw().getOperationType().getValue() + " "
                + message.getRaw().getDocumentKey().getString("_id").getValue());
        var subscription = container.register(ChangeStreamRequest.builder(listener).collection("visits").build(), Visit.class);
        assertTrue(subscription.await(Duration.ofSeconds(60)));
        visits.save(new Visit("1", now().minusSeconds(DAY - 60), 1, null));
        assertEquals("insert 1", heard.poll(60, TimeUnit.SECONDS));
        server.advance(60);
        assertEquals("delete 1", heard.poll(60, TimeUnit.SECONDS));
        container.stop();
    }
}
