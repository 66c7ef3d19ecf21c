//go:build unix

package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runAgent runs an agent on input that ends, and returns its frames by kind.
func runAgent(t *testing.T, in []byte) (map[frame.Kind][]string, error) {
	var out bytes.Buffer
	err := Run(bytes.NewReader(in), &out)
	r := frame.NewReader(&out)
	require.NoError(t, r.ReadHello(io.Discard))
	list := map[frame.Kind][]string{}
	for {
		kind, _, b, end := r.Next()
		if end == io.EOF {
			return list, err
		}
		require.NoError(t, end)
		list[kind] = append(list[kind], string(b))
	}
}

// frames returns the encoded frames of a launcher.
func frames(t *testing.T, list ...any) []byte {
	var b bytes.Buffer
	w := frame.NewWriter(&b)
	for i := 0; i < len(list); i += 2 {
		if text, ok := list[i+1].(string); ok {
			require.NoError(t, w.Write(list[i].(frame.Kind), 0, []byte(text)))
		} else {
			require.NoError(t, w.WriteJSON(list[i].(frame.Kind), 0, list[i+1]))
		}
	}
	return b.Bytes()
}

func TestInvalidFrames(t *testing.T) {
	list, err := runAgent(t, nil) // the launcher ends before its first frame
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Len(t, list[frame.HostReady], 1)
	_, err = runAgent(t, frames(t, frame.Stop, frame.StopRequest{}))
	require.ErrorContains(t, err, "before the Start frame")
	_, err = runAgent(t, frames(t, frame.Start, "{"))
	require.Error(t, err)
	_, err = runAgent(t, frames(t, frame.Start, frame.Spec{Size: 1, Bind: "socket"}))
	require.ErrorContains(t, err, "no binding")
	_, err = runAgent(t, []byte("hello"))
	require.Error(t, err)

	list, err = runAgent(t, frames(t, frame.Start, frame.Spec{Size: 1}, frame.Finished, "", frame.Stdin, "to nobody", frame.PMI, "", frame.Stop, "?"))
	require.NoError(t, err)
	require.Len(t, list[frame.Note], 2)
	require.Equal(t, []string{`{"Refused":0}`}, list[frame.Finished])
}

func TestInvalidRanks(t *testing.T) {
	list, err := runAgent(t, frames(t, frame.Start, frame.Spec{Size: 3, Ranks: []frame.Rank{
		{Rank: 0}, {Rank: 1, Args: []string{"true"}, Dir: "/nonexistent", Stdin: true}, {Rank: 2, Args: []string{"softrnic-none"}, Dir: "/"},
	}}))
	require.NoError(t, err)
	require.Len(t, list[frame.Failed], 3)
	require.Contains(t, list[frame.Failed][0], "no program")
	require.Contains(t, list[frame.Failed][1], "/nonexistent does not exist")
	require.Contains(t, list[frame.Failed][2], "127")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/softrnic-none", nil, 0o600))
	require.Contains(t, startFailureText(frame.Rank{Args: []string{"softrnic-none"}, Dir: dir}, errNotFound(t)), "there is ./softrnic-none")
}

func errNotFound(t *testing.T) error {
	p := newProcess(&agent{processes: newProcessTree(), out: frame.NewWriter(io.Discard)}, frame.Rank{}, 0)
	_, err := p.startProgram(frame.Rank{Args: []string{"softrnic-none"}})
	require.Error(t, err)
	p.closeInputs()
	p.output.Wait()
	return err
}

// TestEndOfTheInput checks that an agent ends its ranks when its input ends without a Stop frame.
func TestEndOfTheInput(t *testing.T) {
	list, err := runAgent(t, frames(t, frame.Start, frame.Spec{Size: 1, GraceMillis: 60_000, Ranks: []frame.Rank{{Args: []string{"sleep", "60"}}}}))
	require.NoError(t, err)
	var e frame.Exit
	require.NoError(t, json.Unmarshal([]byte(list[frame.Exited][0]), &e))
	require.Equal(t, frame.Exit{Signal: 15, Name: "terminated"}, e)
}

func TestNotesAreBounded(t *testing.T) {
	var out bytes.Buffer
	a := &agent{out: frame.NewWriter(&out)}
	for range 1000 {
		a.sendNote("a stranger")
	}
	require.Equal(t, maxNotes, strings.Count(out.String(), "a stranger"))
	require.Contains(t, out.String(), "further messages of this kind are suppressed")
}
