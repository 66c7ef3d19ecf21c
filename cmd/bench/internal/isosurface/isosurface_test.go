package isosurface

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/apptest"
	"github.com/softrnic/softrnic/datacutter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Images of volumes of several sizes: checksums of their pixels, because the bytes of a PNG may
// change with Go. The first is also in testdata.
func TestGoldenPictures(t *testing.T) {
	for _, c := range []struct {
		bytes    int64
		unitSize int
		query    Query
		sum      string // the first 8 bytes of SHA-256
	}{
		{64 << 10, 1024, Query{Size: 200}, "edfb08e8d0e5a0c2"},
		{16 << 10, 1024, Query{Size: 64, Iso: 150, Rotation: [4]int{1, 0, 0, 0}}, "9ceff299e1cc7b71"},
		{48 << 10, 1024, Query{Size: 96, Rotation: [4]int{3, 5, -7, 2}}, "316aebc57d8e0435"},
		{32 << 10, 8192, Query{Size: 33, Iso: 1, Rotation: [4]int{0, 1, 1, 0}}, "87ca3501f8d436d1"},
	} {
		name := fmt.Sprintf("%d bytes, units of %d, %+v", c.bytes, c.unitSize, c.query)
		v := newVolume(t, SpecFor(c.bytes))
		want, err := Reference(v, c.query)
		require.NoError(t, err)
		require.Equal(t, c.sum, apptest.Checksum(want), name)
		if c.query.Size == 200 {
			apptest.CompareGolden(t, "testdata/blobs.png", want)
		}
		got, report, err := Run(apptest.TimeoutContext(t), datacutter.NewTCP(""), Options{Volume: v, Query: c.query, UnitSize: c.unitSize})
		require.NoError(t, err)
		require.Equal(t, apptest.EncodePNG(t, want), apptest.EncodePNG(t, got), name)
		require.Len(t, report.Instances, 24, "the paper's six groups of four filters")
		require.Positive(t, report.Elapsed())
	}
}

// For any volume, query, layout, policy and unit size, the image equals the reference.
func TestAnyRunGivesTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{Volume: newVolume(rt, drawSpec(rt)), Query: drawQuery(rt)}
		o.UnitSize = rapid.OneOf(rapid.IntRange(76, 200), rapid.IntRange(76, 9000)).Draw(rt, "unit")
		o.Works = rapid.IntRange(0, 8).Draw(rt, "works")
		o.Policy = datacutter.Policy(rapid.IntRange(0, 2).Draw(rt, "policy"))
		for g := range rapid.IntRange(1, 2).Draw(rt, "groups") {
			for _, f := range []string{"read", "extract", "raster", "merge"} {
				o.Layout = append(o.Layout, datacutter.Placement{Group: g, Filter: f, Host: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "host"),
					Copies: rapid.IntRange(0, 2).Draw(rt, "copies")})
			}
		}
		want, err := Reference(o.Volume, o.Query)
		require.NoError(rt, err)
		got, _, err := Run(apptest.TimeoutContext(t), datacutter.NewMemory(), o)
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
}

// Every host has its own App, as in separate processes. The first has the image.
func TestHostsOfTheirOwn(t *testing.T) {
	v := newVolume(t, SpecFor(16<<10))
	hosts := []string{"a", "b", "c"}
	apps, jobs := make([]*App, 3), make([]datacutter.Job, 3)
	for i := range hosts {
		var err error
		apps[i], err = New(Options{Volume: v, Query: Query{Size: 50}, Hosts: hosts})
		require.NoError(t, err)
		jobs[i] = apps[i].Job()
	}
	require.NoError(t, apptest.RunOnHosts(apptest.TimeoutContext(t), hosts, jobs))
	want, err := Reference(v, Query{Size: 50})
	require.NoError(t, err)
	got, err := apps[0].Picture()
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = apps[1].Picture()
	require.ErrorContains(t, err, "6 of 6 frames missing in this process")
}

func TestOptionsThatCannotRun(t *testing.T) {
	v := newVolume(t, Spec{Dims: [3]int{4, 4, 4}})
	_, err := New(Options{Volume: v, UnitSize: 75})
	require.ErrorContains(t, err, "units of 75 bytes: want at least 76, the size of one cell")
	for _, q := range []Query{{Iso: 256}, {Iso: -1}, {Size: 4097}, {Size: -1}, {Rotation: [4]int{31, 0, 0, 0}}, {Rotation: [4]int{0, 0, 0, -31}}} {
		_, err := New(Options{Volume: v, Query: q})
		require.ErrorIs(t, err, ErrQuery)
		_, err = Reference(v, q)
		require.ErrorIs(t, err, ErrQuery)
	}
}

// A truncated file ends the run with an error that names the filter.
func TestShortFile(t *testing.T) {
	b := volumeFile(t)
	v, err := Open(bytes.NewReader(b[:len(b)-1]), int64(len(b)))
	require.NoError(t, err)
	_, _, err = Run(apptest.TimeoutContext(t), datacutter.NewMemory(), Options{Volume: v})
	require.ErrorContains(t, err, "datacutter: read[0] of group ")
	require.ErrorContains(t, err, "read plane 5: ")
	_, err = Reference(v, Query{})
	require.ErrorContains(t, err, "read plane 5: ")
}

func BenchmarkRun(b *testing.B) {
	v := newVolume(b, SpecFor(1<<20))
	for name, network := range map[string]datacutter.Network{"memory": datacutter.NewMemory(), "tcp": datacutter.NewTCP("")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				_, _, err := Run(b.Context(), network, Options{Volume: v})
				require.NoError(b, err)
			}
		})
	}
	b.Run("reference", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			_, err := Reference(v, Query{})
			require.NoError(b, err)
		}
	})
}
