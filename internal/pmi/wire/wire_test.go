package wire_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// transcript returns the bytes that a process and mpiexec.hydra sent in a session of ../testdata.
func transcript(t *testing.T, file string) (process, manager []byte) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line[2:] == "EOF" {
			continue
		}
		said, err := strconv.Unquote(`"` + line[2:] + `"`)
		require.NoError(t, err, line)
		switch line[:2] {
		case "> ":
			process = append(process, said...)
		case "< ":
			manager = append(manager, said...)
		default:
			t.Fatal(line)
		}
	}
	return process, manager
}

// messages parses all messages of a stream.
func messages(t *testing.T, b []byte) (list []wire.Message, versions []wire.Version) {
	for len(b) > 0 {
		m, n, err := wire.Next(b)
		require.NoError(t, err)
		require.NotZero(t, n, "%q is not whole", b)
		for part := range n {
			_, n, err := wire.Next(b[:part])
			require.NoError(t, err, "%q", b[:part])
			require.Zero(t, n, "%q", b[:part])
		}
		v := wire.PMI1
		if !bytes.HasPrefix(b, []byte("cmd=")) {
			v = wire.PMI2
		}
		list, versions = append(list, m), append(versions, v)
		b = b[n:]
	}
	return list, versions
}

func TestSessionsOfHydra(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.txt")
	require.NoError(t, err)
	require.Len(t, files, 11)
	for _, file := range files {
		process, manager := transcript(t, file)
		for _, stream := range [][]byte{process, manager} {
			list, versions := messages(t, stream)
			require.NotEmpty(t, list)
			var again []byte
			for i, m := range list {
				for _, a := range m.Attrs {
					if a.Value == "" { // jobid= of PMI-2
						require.Equal(t, wire.PMI2, versions[i])
					}
				}
				again, err = m.Append(again, versions[i])
				require.NoError(t, err)
			}
			// libpmi2 writes its lengths left-justified, hydra right-justified.
			require.Equal(t, strings.ReplaceAll(string(stream), " ", ""), strings.ReplaceAll(string(again), " ", ""), file)
		}
	}
}

// TestMessagesOfHydra checks the parsed messages of one session.
func TestMessagesOfHydra(t *testing.T) {
	_, said := transcript(t, "../testdata/pmi1-rank1.txt")
	list, _ := messages(t, said)
	require.Equal(t, []wire.Message{
		wire.New("response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "0"),
		wire.New("maxes", "kvsname_max", "256", "keylen_max", "64", "vallen_max", "1024"),
		wire.New("universe_size", "size", "-1"),
		wire.New("appnum", "appnum", "0"),
		wire.New("my_kvsname", "kvsname", "kvs_23239_0_1249338243_vm"),
		wire.New("get_result", "rc", "0", "msg", "success", "value", "(vector,(0,1,1))"),
		wire.New("put_result", "rc", "0", "msg", "success"),
		wire.New("barrier_out"),
		wire.New("get_result", "rc", "0", "msg", "success", "value", "192.0.2.1:4791"),
		wire.New("get_result", "rc", "0", "msg", "success", "value", "192.0.2.2:4791"),
		wire.New("get_result", "rc", "0", "msg", "success", "value", "192.0.2.3:4791"),
		wire.New("get_result", "rc", "-1", "msg", "key_nobody_not_found", "value", "unknown"),
		wire.New("barrier_out"),
		wire.New("finalize_ack"),
	}, list)

	said, _ = transcript(t, "../testdata/pmi2-rank0.txt")
	list, _ = messages(t, said)
	require.Equal(t, []wire.Message{
		wire.New("init", "pmi_version", "2", "pmi_subversion", "0"),
		wire.New("fullinit", "pmirank", "0", "threaded", "FALSE"),
		wire.New("job-getid"),
		wire.New("info-getjobattr", "key", "PMI_process_mapping"),
		wire.New("info-getjobattr", "key", "nonsense"),
		wire.New("info-getjobattr", "key", "universeSize"),
		wire.New("kvs-put", "key", "key-0", "value", "a value=with blanks"),
		wire.New("kvs-fence"),
		wire.New("kvs-get", "jobid", "", "srcid", "-1", "key", "key-1"),
		wire.New("kvs-get", "jobid", "", "srcid", "-1", "key", "nokey"),
		wire.New("info-putnodeattr", "key", "na", "value", "nv"),
		wire.New("info-getnodeattr", "key", "na", "wait", "TRUE"),
		wire.New("info-getnodeattr", "key", "nonode", "wait", "FALSE"),
		wire.New("finalize"),
	}, list)
}

func TestBackslashes(t *testing.T) { // of MPICH 4.2 and later
	m, n, err := wire.Next([]byte(`cmd=abort exitcode=1 message=out\ of\ \\memory` + "\nmore"))
	require.NoError(t, err)
	require.Equal(t, wire.New("abort", "exitcode", "1", "message", `out of \memory`), m)
	require.Equal(t, 47, n)
}

func TestSpawnHasManyLines(t *testing.T) {
	text := "mcmd=spawn\nnprocs=2\nexecname=/bin/true\ntotspawns=1\nspawnssofar=1\nargcnt=0\npreput_num=0\ninfo_num=0\nendcmd\n"
	m, n, err := wire.Next([]byte(text + "cmd=finalize\n"))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.Equal(t, "spawn", m.Cmd)
	name, ok := m.Get("execname")
	require.True(t, ok)
	require.Equal(t, "/bin/true", name)
}

func TestInvalidMessages(t *testing.T) {
	long := bytes.Repeat([]byte("x"), wire.MaxMessage)
	for _, text := range []string{
		"GET / HTTP/1.1\r\n", "\x16\x03\x01", "cmdx=", "999999cmd=a;", "  1 2 cmd=a;", "      ", "     5cmd=;", "     4abcd", "    11cmd=a;=b;c;",
		"cmd=\n", "cmd=a =b\n", "cmd=a " + string(long), "mcmd=" + string(long),
		"mcmd=\nendcmd\n", "mcmd=\nnprocs=2\nendcmd\n", "mcmd=spawn\n=b\nendcmd\n", "mcmd=spawn\n\nnprocs=2\nendcmd\n",
	} {
		_, _, err := wire.Next([]byte(text))
		var format *wire.FormatError
		require.ErrorAs(t, err, &format, "%.40q", text)
		require.Less(t, len(err.Error()), 500)
	}
}

func TestInvalidAttributes(t *testing.T) {
	for _, v := range []wire.Version{wire.PMI1, wire.PMI2} {
		for _, m := range []wire.Message{
			wire.New("put", "key", "two\nlines"), wire.New("put", "key", "nul\x00"), wire.New("put", "a b", "c"), wire.New("put", "", "c"),
			wire.New("put", "a=b", "c"), wire.New("put", "a", strings.Repeat("x", wire.MaxMessage)),
		} {
			b, err := m.Append([]byte("before"), v)
			require.Error(t, err)
			require.Equal(t, "before", string(b))
		}
	}
	_, err := wire.New("put", "key", "a b").Append(nil, wire.PMI1)
	require.Error(t, err)
	_, err = wire.New("put", "key", "a;b").Append(nil, wire.PMI2)
	require.Error(t, err)
	require.Equal(t, "PMI-2", wire.PMI2.String())
}

func TestNumbers(t *testing.T) {
	m := wire.New("maxes", "a", "12", "b", "x", "c", "99999999999999", "d", "TRUE")
	n, err := m.Int("a")
	require.NoError(t, err)
	require.Equal(t, 12, n)
	for _, key := range []string{"b", "c", "e"} {
		_, err := m.Int(key)
		require.ErrorContains(t, err, "maxes")
	}
	require.True(t, m.Bool("d"))
	require.False(t, m.Bool("e"))
	require.Len(t, wire.New("x", "y", strings.Repeat("z", 500)).String(), 200)
}

// TestRoundTrip checks that written messages are parsed back, from pieces of any length.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]wire.Version{wire.PMI1, wire.PMI2}).Draw(t, "version")
		word := rapid.StringMatching(`[A-Za-z0-9_.:/@,()-]{1,20}`)
		m := wire.Message{Cmd: rapid.StringMatching(`[a-z][a-z_-]{0,12}`).Draw(t, "cmd")}
		for range rapid.IntRange(0, 5).Draw(t, "attrs") {
			m.Attrs = append(m.Attrs, wire.Attr{Key: rapid.StringMatching(`[a-z_]{1,9}`).Filter(func(s string) bool { return s != "cmd" }).Draw(t, "key"), Value: word.Draw(t, "value")})
		}
		b, err := m.Append(nil, v)
		require.NoError(t, err)
		got, n, err := wire.Next(append(b, "cmd=next"...))
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, m, got)
	})
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("cmd=put kvsname=k key=a value=b\n"))
	f.Add([]byte("    13cmd=finalize;"))
	f.Add([]byte("mcmd=spawn\nnprocs=2\nendcmd\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, n, err := wire.Next(b)
		if n > len(b) || err == nil && n > 0 && m.Cmd == "" {
			t.Fatal(m, n)
		}
	})
}

func Example() {
	put := wire.New("kvs-put", "key", "P0-card", "value", "192.0.2.1:4791")
	b, err := put.Append(nil, wire.PMI2)
	fmt.Printf("%q %v\n", b, err)

	m, n, err := wire.Next(b)
	fmt.Println(m, n == len(b), err)

	nodes, err := wire.ParseMapping("(vector,(0,2,3))", 6)
	fmt.Println(nodes, err)
	// Output:
	// "    45cmd=kvs-put;key=P0-card;value=192.0.2.1:4791;" <nil>
	// cmd=kvs-put key=P0-card value=192.0.2.1:4791 true <nil>
	// [0 0 0 1 1 1] <nil>
}
