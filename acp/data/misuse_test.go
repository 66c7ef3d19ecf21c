package data_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/data"
	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnusable calls every exported function and method with null handles and with
// arguments out of range: each returns, and with an error where it has one.
func TestUnusable(t *testing.T) {
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	defer p.Close()
	ctx := context.Background()
	space, err := data.Open(ctx, p, data.Options{})
	require.NoError(t, err)
	live := func(make func() (any, error)) []misuse.Receiver {
		return []misuse.Receiver{{Name: "live", Usable: true, Make: func() any {
			v, err := make()
			require.NoError(t, err)
			return v
		}}}
	}
	s := &misuse.Surface{
		Dir: ".",
		Funcs: map[string]any{
			"Open": data.Open, "NewDeque": data.NewDeque[int64], "OpenDeque": data.OpenDeque[int64], "NewList": data.NewList[int64], "OpenList": data.OpenList[int64],
			"NewMap": data.NewMap[int64, int64], "OpenMap": data.OpenMap[int64, int64], "NewSet": data.NewSet[int64], "OpenSet": data.OpenSet[int64],
			"NewVector": data.NewVector[int64], "OpenVector": data.OpenVector[int64],
		},
		Types: map[string][]misuse.Receiver{
			"Deque":     live(func() (any, error) { return data.NewDeque[int64](ctx, space, 0, 4) }),
			"List":      live(func() (any, error) { return data.NewList[int64](ctx, space, 0) }),
			"LockError": live(func() (any, error) { return &data.LockError{}, nil }),
			"Map":       live(func() (any, error) { return data.NewMap[int64, int64](ctx, space, 0, data.MapOptions{}) }),
			"Set":       live(func() (any, error) { return data.NewSet[int64](ctx, space, 0, data.MapOptions{}) }),
			"Space":     {{Name: "live", Usable: true, Make: func() any { return space }}},
			"Vector":    live(func() (any, error) { return data.NewVector[int64](ctx, space, 0, 4) }),
		},
		Values: []any{^acp.GA(0)},
		Except: map[string]string{
			"Space.Close on live": "ends the heap of this test",
			"Deque on nil":        "comes of an error that was not looked at: the document names no null container",
			"Deque on zero":       "comes of an error that was not looked at: the document names no null container",
			"List on nil":         "comes of an error that was not looked at: the document names no null container",
			"List on zero":        "comes of an error that was not looked at: the document names no null container",
			"Map on nil":          "comes of an error that was not looked at: the document names no null container",
			"Map on zero":         "comes of an error that was not looked at: the document names no null container",
			"Set on nil":          "comes of an error that was not looked at: the document names no null container",
			"Set on zero":         "comes of an error that was not looked at: the document names no null container",
			"Vector on nil":       "comes of an error that was not looked at: the document names no null container",
			"Vector on zero":      "comes of an error that was not looked at: the document names no null container",
		},
		Errors: []error{acp.ErrNull, acp.ErrLength, data.ErrNotAllocated},
	}
	s.Check(t)
}
