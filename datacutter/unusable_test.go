package datacutter_test

import (
	"testing"

	"github.com/softrnic/softrnic/datacutter"
	"github.com/softrnic/softrnic/internal/misuse"
)

// TestUnusable calls every exported function, and the methods of values that a program creates, with nil
// arguments and numbers out of range.
func TestUnusable(t *testing.T) {
	node, err := datacutter.Listen(t.Context(), datacutter.NewMemory())
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	live := func(v any) []misuse.Receiver {
		return []misuse.Receiver{{Name: "live", Make: func() any { return v }, Usable: true}}
	}
	s := &misuse.Surface{
		Dir:    ".",
		NoNull: "handles come of Listen, and of the job that runs a filter",
		Funcs: map[string]any{
			"Gather": datacutter.Gather, "Spread": datacutter.Spread, "Listen": datacutter.Listen, "Run": datacutter.Run,
			"NewMemory": datacutter.NewMemory, "NewTCP": datacutter.NewTCP,
		},
		Types: map[string][]misuse.Receiver{
			"FilterError": live(&datacutter.FilterError{}),
			"FilterFunc":  live(datacutter.FilterFunc(nil)),
			"Instance":    live(datacutter.Instance{}),
			"Layout":      live(datacutter.Layout(nil)),
			"Node":        live(node),
			"Policy":      live(datacutter.Policy(200)),
			"RemoteError": live(&datacutter.RemoteError{}),
			"Report":      live(datacutter.Report{}),
			"StreamError": live(&datacutter.StreamError{}),
			"Work":        live(&datacutter.Work{}),
		},
		Values: []any{datacutter.Group{}},
		Except: map[string]string{
			"Input":              "is made by the job that runs a filter",
			"Output":             "is made by the job that runs a filter",
			"Node.Close on live": "ends the node of this test",
		},
	}
	s.Check(t)
}
