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

// TestUnusable calls every exported function and method with null handles, destroyed structures, closed
// spaces, and arguments out of range. All must return, with an error if they return errors.
func TestUnusable(t *testing.T) {
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	defer p.Close()
	ctx := context.Background()
	space, err := data.Open(ctx, p, data.Options{})
	require.NoError(t, err)
	closed, graves := closedSpace(t), closedSpace(t)
	var destroyed []any // destroyed at the end, so that memory is not reused before
	live := func(make func(*data.Space) (any, error)) []misuse.Receiver {
		on := func(s *data.Space) any {
			v, err := make(s)
			require.NoError(t, err)
			return v
		}
		list := []misuse.Receiver{{Name: "live", Usable: true, Make: func() any { return on(space) }}}
		if _, is := on(space).(interface{ Destroy(context.Context) error }); is {
			object, gone := on(graves.space), on(closed.space)
			destroyed = append(destroyed, object)
			list = append(list, misuse.Receiver{Name: "destroyed", Make: func() any { return object }},
				misuse.Receiver{Name: "of a closed space", Make: func() any { return gone }})
		}
		return list
	}
	s := &misuse.Surface{
		Dir: ".",
		Funcs: map[string]any{
			"Open": data.Open, "NewDeque": data.NewDeque[int64], "OpenDeque": data.OpenDeque[int64], "NewList": data.NewList[int64], "OpenList": data.OpenList[int64],
			"NewMap": data.NewMap[int64, int64], "OpenMap": data.OpenMap[int64, int64], "NewSet": data.NewSet[int64], "OpenSet": data.OpenSet[int64],
			"NewVector": data.NewVector[int64], "OpenVector": data.OpenVector[int64],
		},
		Types: map[string][]misuse.Receiver{
			"Deque":     live(func(s *data.Space) (any, error) { return data.NewDeque[int64](ctx, s, 0, 4) }),
			"List":      live(func(s *data.Space) (any, error) { return data.NewList[int64](ctx, s, 0) }),
			"LockError": live(func(*data.Space) (any, error) { return &data.LockError{}, nil }),
			"Map":       live(func(s *data.Space) (any, error) { return data.NewMap[int64, int64](ctx, s, 0, data.MapOptions{}) }),
			"Set":       live(func(s *data.Space) (any, error) { return data.NewSet[int64](ctx, s, 0, data.MapOptions{}) }),
			"Space":     {{Name: "live", Usable: true, Make: func() any { return space }}, {Name: "closed", Make: func() any { return closed.space }}},
			"Vector":    live(func(s *data.Space) (any, error) { return data.NewVector[int64](ctx, s, 0, 4) }),
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
		Quiet: map[string]string{
			"Map.Len on destroyed":  "adds up the counts of the parts without the lock that would detect it",
			"Set.Len on destroyed":  "adds up the counts of the parts without the lock that would detect it",
			"Space.Close on closed": "may be called again",
		},
		Errors: []error{acp.ErrNull, acp.ErrLength, acp.ErrRegion, acp.ErrRank, data.ErrNotAllocated, data.ErrDestroyed, data.ErrKind, data.ErrIndex, acp.ErrOptions},
	}
	closed.close()
	for _, object := range destroyed {
		require.NoError(t, object.(interface{ Destroy(context.Context) error }).Destroy(ctx))
	}
	s.Check(t)
}

// aSpace is a heap that is closed after the structures in it are created.
type aSpace struct {
	space *data.Space
	close func()
}

func closedSpace(t *testing.T) aSpace {
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	s, err := data.Open(t.Context(), p, data.Options{})
	require.NoError(t, err)
	return aSpace{s, func() { require.NoError(t, s.Close(t.Context())) }}
}
