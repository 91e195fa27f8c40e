// Trust stores of Java clients: a PKCS #12 file with one server's root, as `keytool -importcert` makes it. No client of these suites
// accepts a certificate without such a file.

package bolide.support;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public final class TrustStores {
    public static final String PASSWORD = "changeit";

    private TrustStores() {}

    /** A new file that trusts this root, PEM, alone. */
    static Path of(String root) {
        try {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            var pem = new ByteArrayInputStream(root.getBytes(StandardCharsets.US_ASCII));
            store.setCertificateEntry("bolide", CertificateFactory.getInstance("X.509").generateCertificate(pem));
            Path file = Files.createTempFile("bolide-trust-", ".p12");
            file.toFile().deleteOnExit();
            try (OutputStream output = Files.newOutputStream(file)) {
                store.store(output, PASSWORD.toCharArray());
            }
            return file;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /**
     * What {@code -Djavax.net.ssl.trustStore=FILE} does for a program: clients that are made from now on trust this file and no
     * root of Java's own.
     */
    public static void use(Path file) {
        System.setProperty("javax.net.ssl.trustStore", file.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", PASSWORD);
    }

    /** For clients that take a context rather than read the system properties. */
    public static SSLContext context(Path file) {
        try (InputStream input = Files.newInputStream(file)) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(input, PASSWORD.toCharArray());
            var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}
