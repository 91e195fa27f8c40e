// Package server starts a Bolide process and moves its test clock, for the suites of all Go clients.
//
// The clock stands still except when a test moves it, so nothing waits for a deadline. The only waiting is for a process to
// become ready or to end.
package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// EmulatorKey is the key that every Cosmos emulator shares; Bolide accepts it while it listens on loopback only.
const EmulatorKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// Day is a day in seconds.
const Day = 24 * 60 * 60

const startTimeout = time.Minute

var (
	httpAddress  = regexp.MustCompile(`AccountEndpoint=http://(127\.0\.0\.1:\d+)/`)
	mongoAddress = regexp.MustCompile(`mongodb://(?:[^@\s]*@)?(127\.0\.0\.1:\d+)`)
)

// Server is one `bolide serve --test-clock --stopped-clock`; the test that started it ends it.
type Server struct {
	// HTTP is host and port of the NoSQL API, Mongo those of the MongoDB API.
	HTTP, Mongo string

	t         testing.TB
	arguments []string
	process   *exec.Cmd
	ended     chan error
}

// Start starts a server that keeps everything in memory, with more arguments for `bolide serve`.
func Start(t testing.TB, arguments ...string) *Server {
	t.Helper()
	return start(t, append([]string{"--memory"}, arguments...))
}

// StartOnDisk starts a server that keeps its data in a folder of the test, and so outlives Kill.
func StartOnDisk(t testing.TB, arguments ...string) *Server {
	t.Helper()
	return start(t, append([]string{"--data", t.TempDir()}, arguments...))
}

func start(t testing.TB, arguments []string) *Server {
	t.Helper()
	server := &Server{t: t, HTTP: "127.0.0.1:0", Mongo: "127.0.0.1:0"}
	server.arguments = append([]string{"serve", "--test-clock", "--stopped-clock"}, arguments...)
	t.Cleanup(server.stop)
	server.launch()
	return server
}

func (s *Server) launch() {
	s.t.Helper()
	binary := os.Getenv("BOLIDE_BIN")
	if binary == "" {
		s.t.Fatal("BOLIDE_BIN must name the server binary; `cargo xtask compat` sets it")
	}
	arguments := append(s.arguments[:len(s.arguments):len(s.arguments)], "--listen", s.HTTP, "--mongo-listen", s.Mongo)
	s.process = exec.Command(binary, arguments...)
	s.process.Env = environment()
	s.process.Stderr = os.Stderr
	output, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.readAddresses(bufio.NewScanner(output))
	process, ended := s.process, make(chan error, 1)
	// The pipe is read to its end, or a chatty server would block on it.
	go func() {
		_, _ = io.Copy(io.Discard, output)
		ended <- process.Wait()
	}()
	s.ended = ended
	s.waitUntilReady()
}

// environment returns the environment of this process without the settings of other servers.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "BOLIDE_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// readAddresses reads what the server prints up to its connection string, which is the last line that tells an address.
func (s *Server) readAddresses(lines *bufio.Scanner) {
	s.t.Helper()
	for lines.Scan() {
		if found := mongoAddress.FindStringSubmatch(lines.Text()); found != nil {
			s.Mongo = found[1]
		}
		if found := httpAddress.FindStringSubmatch(lines.Text()); found != nil {
			s.HTTP = found[1]
			return
		}
	}
	s.t.Fatal("the server announced no address")
}

func (s *Server) waitUntilReady() {
	s.t.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		if answer, err := http.Get("http://" + s.HTTP + "/ready"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatal("the server did not become ready")
}

// Kill ends the process with SIGKILL, so that it cannot clean up.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
	s.process = nil
}

// StartAgain starts a killed server on the data and the addresses that it had.
func (s *Server) StartAgain() {
	s.t.Helper()
	s.launch()
}

// stop ends the process with SIGTERM, after which it must drain and exit with status 0.
func (s *Server) stop() {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("the server after SIGTERM: %v", err)
		}
	case <-time.After(startTimeout):
		_ = s.process.Process.Kill()
		s.t.Error("the server did not end after SIGTERM")
	}
}

// Admin calls the admin API and decodes the answer into result, unless that is nil.
func (s *Server) Admin(method, path string, body, result any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequest(method, "http://"+s.HTTP+"/_bolide/"+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+EmulatorKey)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	told, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, told, err)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(told, result); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, told)
	}
}

// Now returns the server's time in Unix seconds.
func (s *Server) Now() int64 {
	s.t.Helper()
	var clock struct {
		Now int64 `json:"now"`
	}
	s.Admin(http.MethodGet, "clock", nil, &clock)
	return clock.Now
}

// Advance moves the clock on by so many seconds.
func (s *Server) Advance(seconds int64) {
	s.t.Helper()
	s.Admin(http.MethodPost, "clock", map[string]int64{"advanceSeconds": seconds}, nil)
}

// MoveTo moves the clock to an instant in Unix seconds, which must not lie in the past.
func (s *Server) MoveTo(instant int64) {
	s.t.Helper()
	distance := instant - s.Now()
	if distance < 0 {
		s.t.Fatalf("the clock cannot go back by %d s; give the test more room", -distance)
	}
	if distance > 0 {
		s.Advance(distance)
	}
}

// PausePurge leaves expired items where they are.
func (s *Server) PausePurge() {
	s.t.Helper()
	s.Admin(http.MethodPost, "purge", map[string]bool{"paused": true}, nil)
}

// RootCertificate returns what clients by TLS should trust, PEM.
func (s *Server) RootCertificate() ([]byte, error) {
	answer, err := http.Get("http://" + s.HTTP + "/_explorer/emulator.pem")
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the root certificate: %s", answer.Status)
	}
	return io.ReadAll(answer.Body)
}
