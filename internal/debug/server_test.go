package debug

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a device without state and counters.
type nobody struct{}

func (nobody) Stat() any                 { return "nothing" }
func (nobody) QP(uint32) (any, bool)     { return nil, false }
func (nobody) StartCapture(string) error { return nil }
func (nobody) StopCapture() error        { return nil }

// TestWithoutMetrics checks that a program without a metrics library explains how to link one.
func TestWithoutMetrics(t *testing.T) {
	s, err := Serve(nobody{}, "127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for path, want := range map[string]string{"/metrics": `add import _ "github.com/softrnic/softrnic/rnic/rnicdebug"`, "/stat": `"nothing"`} {
		res, err := http.Get("http://" + s.Addr() + path)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Contains(t, string(text), want)
	}
}
