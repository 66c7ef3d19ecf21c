package server_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/pmi/server"
	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// hang is the time after which a test has failed.
const hang = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rank is a rank that a test simulates.
type rank struct {
	*server.Session
	answers bytes.Buffer
}

// job creates a job and attaches all of its ranks.
func job(t testing.TB, o server.Options) (*server.Job, []*rank) {
	j, err := server.New(o)
	require.NoError(t, err)
	ranks := make([]*rank, o.Size)
	for i := range ranks {
		r := &rank{}
		r.Session, err = j.Attach(i, func(b []byte) { r.answers.Write(b) })
		require.NoError(t, err)
		ranks[i] = r
	}
	return j, ranks
}

// nextReply returns the next message to the rank, "" if there is none.
func (r *rank) nextReply(t testing.TB) string {
	m, n, err := wire.Next(r.answers.Bytes())
	require.NoError(t, err)
	if n == 0 {
		return ""
	}
	r.answers.Next(n)
	return m.String()
}

// request sends lines of PMI-1 and returns the reply to the last one.
func (r *rank) request(t testing.TB, lines ...string) (last string) {
	for _, line := range lines {
		require.NoError(t, r.Feed([]byte(line+"\n")))
		last = r.nextReply(t)
	}
	return last
}

// say2 sends messages of PMI-2 and returns the reply to the last one.
func (r *rank) say2(t testing.TB, messages ...string) (last string) {
	for _, m := range messages {
		require.NoError(t, r.Feed([]byte(counted(m))))
		last = r.nextReply(t)
	}
	return last
}

// counted returns a message of PMI-2 with its length before it.
func counted(m string) string { return padded(len(m)) + m }

func padded(n int) string {
	text := strconv.Itoa(n)
	return strings.Repeat(" ", 6-len(text)) + text
}

const (
	init1 = "cmd=init pmi_version=1 pmi_subversion=1"
	init2 = "cmd=init pmi_version=2 pmi_subversion=0"
)

// transcript returns the requests of a process to mpiexec.hydra, and the replies, by message.
func transcript(t *testing.T, file string) (asked, answered []string) {
	text, err := os.ReadFile("../testdata/" + file)
	require.NoError(t, err)
	var streams [2][]byte
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line[2:] == "EOF" {
			continue
		}
		said, err := strconv.Unquote(`"` + line[2:] + `"`)
		require.NoError(t, err)
		i := strings.IndexByte("><", line[0])
		streams[i] = append(streams[i], said...)
	}
	split := func(b []byte) (list []string) {
		for len(b) > 0 {
			_, n, err := wire.Next(b)
			require.NoError(t, err)
			require.NotZero(t, n)
			list = append(list, string(b[:n]))
			b = b[n:]
		}
		return list
	}
	return split(streams[0]), split(streams[1])
}
