package sdpproxy_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/sdp"
)

// program is a command without support for RDMA.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s here; on Debian: apt-get install %s", name, name)
	}
	return path
}

// TestCurl downloads and uploads through a pair of proxies.
func TestCurl(t *testing.T) {
	curl := program(t, "curl")
	size := int64(30 << 20)
	if testing.Short() {
		size = 3 << 20
	}
	content := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), size) }
	want := sha256.New()
	_, _ = io.Copy(want, content())
	sum := fmt.Sprintf("%x", want.Sum(nil))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.Copy(w, content())
			return
		}
		h := sha256.New()
		_, _ = io.Copy(h, r.Body)
		fmt.Fprintf(w, "%x", h.Sum(nil))
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		require.NoError(t, server.Close())
		<-ended
	}()
	near, _ := between(t, l.Addr(), sdp.Options{})
	url := "http://127.0.0.1:" + portText(near.at)

	run := func(stdin io.Reader, args ...string) []byte {
		c := exec.CommandContext(toolstest.Context(t), curl, append([]string{"--silent", "--show-error", "--fail", "--noproxy", "*"}, args...)...)
		var diag bytes.Buffer
		c.Stdin, c.Stderr = stdin, &diag
		out, err := c.Output()
		require.NoError(t, err, diag.String())
		return out
	}
	got := sha256.Sum256(run(nil, url+"/one", url+"/two")) // over one connection
	twice := sha256.New()
	_, _ = io.Copy(twice, io.MultiReader(content(), content()))
	require.Equal(t, fmt.Sprintf("%x", twice.Sum(nil)), fmt.Sprintf("%x", got))
	require.Equal(t, sum, string(run(content(), "--upload-file", "-", url)))
}

// TestIperf3 measures through a pair of proxies, in both directions and with several streams. It
// does not check the ends of the streams: iperf3 counts the bytes that have arrived when the time
// is over, and resets the connection.
func TestIperf3(t *testing.T) {
	iperf := program(t, "iperf3")
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address.String())
	require.NoError(t, err)
	server := exec.Command(iperf, "--server", "--bind", "127.0.0.1", "--port", port, "--forceflush")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	listening := make(chan struct{}, 100) // it rejects a client before it prints that
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "Server listening") {
				listening <- struct{}{}
			}
		}
	}()

	list := []sdp.FlowControl{sdp.NIC, sdp.Credit}
	if testing.Short() {
		list = list[:1]
	}
	for _, d := range list {
		near, far := between(t, address, sdp.Options{FlowControl: d})
		for _, extra := range [][]string{{"--parallel", "4"}, {"--reverse"}} {
			select {
			case <-listening:
			case <-time.After(toolstest.HangTimeout):
				t.Fatal("iperf3 does not listen")
			}
			args := append([]string{"--client", "127.0.0.1", "--port", portText(near.at), "--time", "1", "--json"}, extra...)
			text, err := exec.CommandContext(toolstest.Context(t), iperf, args...).CombinedOutput()
			require.NoError(t, err, "%s", text)
			var report struct {
				End struct {
					Received struct{ Bytes float64 } `json:"sum_received"`
				} `json:"end"`
			}
			require.NoError(t, json.Unmarshal(text, &report))
			require.Positive(t, report.End.Received.Bytes, "%s", text)
			t.Logf("%v %v: %.0f MB in a second", d, extra, report.End.Received.Bytes/1e6)
		}
		near.stopAndWait(t)
		far.stopAndWait(t)
	}
}

// freeAddress returns a TCP address that was free at the time of the call.
func freeAddress(t *testing.T) net.Addr {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr()
}
