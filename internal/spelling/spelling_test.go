package spelling_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/spelling"
)

func TestNearest(t *testing.T) {
	experiments := []string{"verbs-latency", "verbs-loss", "sdp-latency", "mpi-latency", "nas-is", "imb-barrier"}
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"verbs-latncy", experiments, "verbs-latency"},
		{"verb-latency", experiments, "verbs-latency"},
		{"verbs-lantecy", experiments, "verbs-latency"},
		{"SDP-Latency", experiments, "sdp-latency"},
		{"imb-barrrier", experiments, "imb-barrier"},
		{"nas-si", experiments, "nas-is"},
		{"nosuch", experiments, ""},
		{"", experiments, ""},
		{"x", nil, ""},
		{"rnu", []string{"run", "report", "list"}, "run"},
		{"quik", []string{"set", "out", "quick"}, "quick"},
		{"ud", []string{"rc", "uc"}, ""},
		{"xrc", []string{"rc", "uc"}, "rc"},
		{"nci", []string{"rdma", "nic", "credit"}, "nic"},
	} {
		require.Equal(t, c.want, spelling.Nearest(c.word, c.known...), "%q", c.word)
	}
}

func ExampleHint() {
	fmt.Printf("flow control %q%s\n", "credti", spelling.Hint("credti", "nic", "rdma", "credit"))
	fmt.Printf("flow control %q%s\n", "best", spelling.Hint("best", "nic", "rdma", "credit"))
	// Output:
	// flow control "credti"; did you mean "credit"?
	// flow control "best"
}
