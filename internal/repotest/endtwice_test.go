package repotest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/data"
	"github.com/softrnic/softrnic/datacutter"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// endedTwice are the results of ending an object of acp, mpi and datacutter that has ended. Close is
// idempotent, as in the other packages. For the names of the standards, Free, Destroy and Finalize,
// an object that has ended is an invalid argument.
var endedTwice = map[string]error{
	"acp.Region.Close": nil, "acp.Chan.Close": nil, "acp.Process.Close": nil, "data.Space.Close": nil, "datacutter.Node.Close": nil,
	"acp.Channel.Free": acp.ErrFreed, "acp.Process.Finalize": acp.ErrClosed,
	"data.Space.Free": data.ErrNotAllocated, "data.List.Destroy": data.ErrDestroyed, "data.Vector.Destroy": data.ErrDestroyed,
	"data.Deque.Destroy": data.ErrDestroyed, "data.Map.Destroy": data.ErrDestroyed, "data.Set.Destroy": data.ErrDestroyed,
	"mpi.Comm.Free": mpi.ErrFreed, "mpi.Win.Free": mpi.ErrWin, "mpi.Request.Free": mpi.ErrRequest,
	"mpi.World.Finalize": mpi.ErrFinalized, "mpi.World.FinalizeContext": mpi.ErrFinalized,
}

// An ending ends an object of the type in its name.
type ending struct {
	name string
	end  func() error
}

// TestEndTwice ends an object of each type of acp, mpi and datacutter three times at one of two
// ranks, and once at the other one.
func TestEndTwice(t *testing.T) {
	tested := map[string]bool{}
	check := func(rank int, endings []ending) error {
		for _, e := range endings {
			if err := e.end(); err != nil {
				return err
			}
			if rank == 1 { // must not wait for the first, which ends its object again
				continue
			}
			tested[e.name] = true
			want, ok := endedTwice[e.name]
			require.True(t, ok, e.name)
			for range 2 {
				require.ErrorIs(t, e.end(), want, e.name)
			}
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := acptest.Run(2, func(p *acp.Process) error { return check(p.Rank(), acpEndings(ctx, t, p)) })
	require.ErrorIs(t, err, acp.ErrClosed, "Run finalizes again")
	err = acptest.Run(1, func(p *acp.Process) error { return check(p.Rank(), []ending{{"acp.Process.Close", p.Close}}) })
	require.ErrorIs(t, err, acp.ErrClosed)
	for name, finalize := range map[string]func(mpi.World) error{
		"mpi.World.Finalize":        mpi.World.Finalize,
		"mpi.World.FinalizeContext": func(w mpi.World) error { return w.FinalizeContext(ctx) },
	} {
		err = mpitest.Run(2, func(w mpi.World) error {
			return check(w.Rank(), append(mpiEndings(t, w), ending{name, func() error { return finalize(w) }}))
		})
		require.ErrorIs(t, err, mpi.ErrFinalized)
	}
	for _, network := range []datacutter.Network{datacutter.NewTCP(""), datacutter.NewMemory()} {
		node := must(datacutter.Listen(ctx, network))(t)
		require.NoError(t, check(0, []ending{{"datacutter.Node.Close", node.Close}}))
	}
	require.Len(t, tested, len(endedTwice))
	for _, dir := range []string{"acp", "acp/data", "mpi", "datacutter"} {
		for _, name := range methodsThatEnd(t, dir) {
			require.True(t, tested[name], name)
		}
	}
}

// acpEndings returns the objects of acp and acp/data at one of two ranks, users first.
func acpEndings(ctx context.Context, t *testing.T, p *acp.Process) []ending {
	region := must(p.Register(make([]byte, 64)))(t)
	channel := must(p.NewChannel(0, 1, acp.ChannelOptions{}))(t)
	values := must(acp.NewChan[int64](p, 0, 1, acp.ChannelOptions{}))(t)
	space := must(data.Open(ctx, p, data.Options{}))(t)
	ga := must(space.Malloc(ctx, p.Rank(), 64))(t)
	destroy := func(name string, o interface{ Destroy(context.Context) error }) ending {
		return ending{"data." + name + ".Destroy", func() error { return o.Destroy(ctx) }}
	}
	return []ending{
		destroy("List", must(data.NewList[int64](ctx, space, p.Rank()))(t)),
		destroy("Vector", must(data.NewVector[int64](ctx, space, p.Rank(), 4))(t)),
		destroy("Deque", must(data.NewDeque[int64](ctx, space, p.Rank(), 4))(t)),
		destroy("Map", must(data.NewMap[int64, int64](ctx, space, p.Rank(), data.MapOptions{}))(t)),
		destroy("Set", must(data.NewSet[int64](ctx, space, p.Rank(), data.MapOptions{}))(t)),
		{"data.Space.Free", func() error { return space.Free(ctx, ga) }},
		{"data.Space.Close", func() error { return space.Close(ctx) }},
		{"acp.Channel.Free", func() error { _, err := channel.Free().Wait(ctx); return err }},
		{"acp.Chan.Close", func() error { return values.Close(ctx) }},
		{"acp.Region.Close", region.Close},
		{"acp.Process.Finalize", func() error { return p.Finalize(ctx) }},
	}
}

// mpiEndings returns the objects of mpi at one of two ranks, without the world.
func mpiEndings(t *testing.T, w mpi.World) []ending {
	dup := must(w.Dup())(t)
	return []ending{
		{"mpi.Win.Free", must(mpi.WinCreate(dup, make([]int64, 8)))(t).Free},
		{"mpi.Request.Free", must(dup.RecvInit(mpi.Value(new(int64)), mpi.AnySource, 0))(t).Free},
		{"mpi.Comm.Free", dup.Free},
	}
}

// methodsThatEnd returns the exported methods of a package that end an object of an exported type, with
// the last element of the package's path.
func methodsThatEnd(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !receiverExported(f.Recv.List[0].Type) ||
				!slices.Contains([]string{"Close", "Free", "Destroy", "Finalize", "FinalizeContext", "Shutdown"}, f.Name.Name) {
				continue
			}
			names = append(names, filepath.Base(dir)+"."+receiverName(f.Recv.List[0].Type)+"."+f.Name.Name)
		}
	}
	require.NotEmpty(t, names, dir)
	return names
}

// receiverName returns the name of the type of a receiver.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	}
	return e.(*ast.Ident).Name
}
