package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

func dial(t *testing.T, at string) net.Conn {
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
	return c
}

func TestForeignConnections(t *testing.T) {
	reasons := make(chan error, 10)
	came := make(chan net.Conn, 10)
	port, err := server.Listen(server.PortOptions{Address: "127.0.0.1:0", Size: 4, Secret: "s3cret",
		IsExpected: func(rank int) bool { return rank < 3 },
		OnReject:   func(err error) { reasons <- err },
		OnRank:     func(_ int, c net.Conn) { came <- c },
	})
	require.NoError(t, err)
	hello := "cmd=initack pmiid=1 secret=s3cret\n"
	_, err = dial(t, port.Addr()).Write([]byte(hello))
	require.NoError(t, err)
	welcome := <-came
	defer welcome.Close()

	strangers := []struct{ says, why string }{
		{"GET / HTTP/1.1\r\n", "malformed PMI message"},
		{"\x16\x03\x01\x02\x00\x01\x00\n", "malformed PMI message"},
		{strings.Repeat("cmd=x ", 1000), "secret"},
		{"cmd=initack pmiid=0\n", "secret"},
		{"cmd=initack pmiid=0 secret=s3cre\n", "secret"},
		{"cmd=init pmi_version=1 secret=s3cret\n", "secret"},
		{"cmd=initack secret=s3cret\n", "hello without a rank"},
		{"cmd=initack pmiid=3 secret=s3cret\n", "unexpected rank"},
		{"cmd=initack pmiid=-1 secret=s3cret\n", "unexpected rank"},
		{hello, "already"},
		{"cmd=init", "read hello"},
	}
	for i, s := range strangers {
		c := dial(t, port.Addr())
		_, err := c.Write([]byte(s.says))
		require.NoError(t, err)
		if !strings.HasSuffix(s.says, "\n") {
			_ = c.(*net.TCPConn).CloseWrite() // the port may have closed the connection already
		}
		answer, _ := io.ReadAll(c) // end of file or a reset
		require.Empty(t, answer)
		require.ErrorContains(t, <-reasons, s.why)
		require.Equal(t, uint64(i+1), port.Rejected())
	}
	// A connection that sends nothing is closed with the port.
	silent := dial(t, port.Addr())
	other := dial(t, port.Addr()) // so that silent is accepted
	_, err = other.Write([]byte("cmd=initack pmiid=2 secret=s3cret\n"))
	require.NoError(t, err)
	(<-came).Close()
	require.NoError(t, port.Close())
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	require.Equal(t, uint64(len(strangers)), port.Rejected())

	_, err = server.Listen(server.PortOptions{Address: "127.0.0.1:0"})
	require.ErrorContains(t, err, "secret")
	_, err = server.Listen(server.PortOptions{Address: "nowhere", Secret: "x"})
	require.Error(t, err)
}

// TestWelcome checks that the first lines at a port are those of hydra.
func TestWelcome(t *testing.T) {
	asked, answered := transcript(t, "pmi1-port-mpich-rank1.txt")
	j, err := server.New(server.Options{Size: 2, ID: "j"})
	require.NoError(t, err)
	served := make(chan error)
	port, err := server.Listen(server.PortOptions{Address: "127.0.0.1:0", Size: 2, Secret: "s3cret", OnRank: func(rank int, c net.Conn) {
		go func() { served <- j.Serve(rank, c) }()
	}})
	require.NoError(t, err)
	c := dial(t, port.Addr())
	fmt.Fprintf(c, "%s secret=s3cret\n%s", strings.TrimSuffix(asked[0], "\n"), asked[1])
	in := bufio.NewReader(c)
	for _, want := range answered[:5] {
		got, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.NoError(t, c.Close())
	require.NoError(t, <-served)
	require.NoError(t, port.Close())
}

func TestServe(t *testing.T) {
	j, err := server.New(server.Options{Size: 2, ID: "j"})
	require.NoError(t, err)
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- j.Serve(0, theirs) }()
	_, err = ours.Write([]byte("hello?"))
	require.NoError(t, err)
	require.ErrorContains(t, <-done, "rank 0")
	_, err = ours.Read(make([]byte, 1))
	require.Error(t, err)

	_, theirs = net.Pipe()
	require.ErrorContains(t, j.Serve(0, theirs), "already")

	// A rank that sends requests without reading replies is disconnected.
	ours, theirs = net.Pipe()
	go func() { done <- j.Serve(1, theirs) }()
	_, err = ours.Write([]byte(init1 + "\n"))
	require.NoError(t, err)
	var writer sync.WaitGroup
	writer.Go(func() {
		for err == nil {
			_, err = ours.Write([]byte(strings.Repeat("cmd=get_maxes\n", 1000)))
		}
	})
	require.ErrorContains(t, <-done, "does not read the replies")
	writer.Wait()
}
