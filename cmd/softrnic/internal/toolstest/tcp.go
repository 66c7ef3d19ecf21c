package toolstest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Message is a message of a recorded handshake.
type Message struct {
	Original bool // sent by the original program
	Text     string
}

// ReadTranscript reads a recorded handshake of testdata: lines of the sender and the text, which
// parse splits into messages.
func ReadTranscript(t testing.TB, name string, parse func(line string) ([]string, error)) (list []Message) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sender, line, _ := strings.Cut(lines.Text(), " ")
		if sender == "#" {
			continue
		}
		texts, err := parse(line)
		require.NoError(t, err)
		for _, text := range texts {
			list = append(list, Message{sender == "original", text})
		}
	}
	require.NoError(t, lines.Err())
	return list
}

// Dial connects to a server's TCP port on this machine.
func Dial(t testing.TB, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// RunClient starts a client in the background that connects to a TCP port of 127.0.0.1, where the
// test plays the server.
func RunClient[O any](t testing.TB, run func(port int) O) (conn net.Conn, ended <-chan O) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	end := make(chan O, 1)
	go func() { end <- run(l.Addr().(*net.TCPAddr).Port) }()
	conn, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, end
}
