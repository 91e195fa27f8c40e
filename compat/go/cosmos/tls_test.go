package cosmos

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"

	"bolide/compat/server"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// trusting makes a client by TLS whose only authority is the root of that server.
func trusting(t *testing.T, endpoint string, trusted *server.Server) *azcosmos.Client {
	t.Helper()
	pem, err := trusted.RootCertificate()
	check(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", pem)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	options := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: transport},
		Retry:     policy.RetryOptions{MaxRetries: -1},
	}}
	credential, err := azcosmos.NewKeyCredential(server.EmulatorKey)
	check(t, err)
	client, err := azcosmos.NewClientWithKey(endpoint, credential, options)
	check(t, err)
	t.Cleanup(client.Close)
	return client
}

func TestTLSWithTheRootOfTheServerAndOnlyThen(t *testing.T) {
	s, other := server.Start(t), server.Start(t)
	_, port, _ := strings.Cut(s.HTTP, ":")
	for _, host := range []string{"localhost", "127.0.0.1"} {
		in := database(t, trusting(t, "https://"+host+":"+port+"/", s), host)
		container := container(t, in, properties("c", seconds(60)), 20000)
		create(t, container, "1", nil)
		equal(t, "over all ranges", len(ids(t, container, azcosmos.NewPartitionKey(), "SELECT * FROM c")), 1)
	}
	stranger := trusting(t, "https://localhost:"+port+"/", other)
	_, err := stranger.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "x"}, nil)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Fatalf("another server's root must not do: %v", err)
	}
}
