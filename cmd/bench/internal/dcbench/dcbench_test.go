package dcbench

import (
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

func newDataSet(t *testing.T, app App) *DataSet {
	d, err := NewDataSet(t.TempDir(), app, 100<<10, 1<<10)
	require.NoError(t, err)
	return d
}

// Both applications compute the reference image over every transport repeatedly.
func TestRun(t *testing.T) {
	data := []*DataSet{newDataSet(t, Microscope), newDataSet(t, Isosurface)}
	units := map[App]uint64{}
	for _, over := range Transports() {
		c, err := Open(t.Context(), Config{Transport: over, Buffers: 8, BufferBytes: 8 << 10})
		require.NoError(t, err)
		defer c.Close()
		for range 2 {
			for _, d := range data {
				var res Result
				ms, err := c.Rounds(d, func(r Result) { res = r })(t.Context())
				require.NoError(t, err)
				require.Positive(t, ms)
				require.InDelta(t, res.Elapsed.Seconds()*1000, ms, 0.01)
				require.Positive(t, res.Units)
				if units[d.app] == 0 {
					units[d.app] = res.Units
				}
				require.Equal(t, units[d.app], res.Units, "the same over any carrier")
				if over == sdpbench.TCP || over == BufferedTCP {
					require.Zero(t, res.Messages)
				} else {
					require.Positive(t, res.Messages)
				}
				t.Logf("%s over %s: %+v", d.app, over, res)
			}
		}
		c.Close()
	}
}

// The paper's number of nodes as processes.
func TestManyProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 25 processes")
	}
	for app, nodes := range map[App]int{Microscope: 13, Isosurface: 12} {
		c, err := Open(t.Context(), Config{Transport: sdpbench.NIC, Processes: nodes})
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Run(t.Context(), newDataSet(t, app))
		require.NoError(t, err)
		c.Close()
	}
}

// A wrong image is detected.
func TestWrongPicture(t *testing.T) {
	c, err := Open(t.Context(), Config{Transport: sdpbench.TCP})
	require.NoError(t, err)
	defer c.Close()
	for app := range programs {
		d, other := newDataSet(t, app), newDataSet(t, app)
		b, err := os.ReadFile(other.path)
		require.NoError(t, err)
		changed := *d
		changed.path = other.path
		require.NoError(t, os.WriteFile(other.path, alter(t, app, b), 0o600))
		_, err = c.Run(t.Context(), &changed)
		require.ErrorContains(t, err, "tcp: wrong data: "+string(app)+" returned an image of")
		_, err = c.Run(t.Context(), d)
		require.NoError(t, err, "and the next may be right")
	}
}

// alter changes visible data.
func alter(t *testing.T, app App, b []byte) []byte {
	if app == Isosurface {
		clear(b[len(b)/2:]) // samples
		return b
	}
	d, err := NewDataSet(t.TempDir(), app, 90<<10, 1<<10)
	require.NoError(t, err)
	b, err = os.ReadFile(d.path)
	require.NoError(t, err)
	return b
}

// The error of a failed run names the filter and its process.
func TestFailure(t *testing.T) {
	for _, over := range []sdpbench.Transport{sdpbench.TCP, BufferedTCP, sdpbench.NIC} {
		d := newDataSet(t, Microscope)
		c, err := Open(t.Context(), Config{Transport: over})
		require.NoError(t, err)
		defer c.Close()
		b, err := os.ReadFile(d.path)
		require.NoError(t, err)
		clear(b[:1000]) // the first tiles
		require.NoError(t, os.WriteFile(d.path, b, 0o600))
		_, err = c.Run(t.Context(), d)
		require.ErrorContains(t, err, string(over)+": ")
		require.ErrorContains(t, err, "decompress[0] of group 0 on host process01: work 0: tile (0,0)-(18,18): ")
		_, err = c.Run(t.Context(), d)
		require.Error(t, err, "the cluster is of no further use")
		c.Close()
	}
}

func TestLayout(t *testing.T) {
	for app, p := range programs {
		for processes := 2; processes <= 13; processes++ {
			l := p.placeFilters(processes)
			require.Len(t, l, p.groups*len(p.filters))
			require.Len(t, l.Hosts(), processes, "%s: none is empty", app)
			has := map[string]int{}
			for i, at := range l {
				has[at.Host]++
				last := p.filters[len(p.filters)-1]
				if at.Filter == last {
					require.Equal(t, hostName(0), at.Host)
				} else if i > 0 && l[i-1].Group == at.Group {
					require.NotEqual(t, l[i-1].Host, at.Host, "%s with %d processes: neighbours of group %d", app, processes, at.Group)
				}
			}
			if processes == 2 {
				require.Equal(t, p.groups*((len(p.filters)+1)/2), has[hostName(0)])
			}
			for h, n := range has {
				require.LessOrEqual(t, n, max(p.groups, (len(l)+processes-1)/processes+p.groups), "%s with %d processes: %s", app, processes, h)
			}
		}
	}
}

func TestBadConfig(t *testing.T) {
	_, err := Open(t.Context(), Config{Transport: "pigeon"})
	require.ErrorContains(t, err, `unknown transport "pigeon"`)
	_, err = Open(t.Context(), Config{Transport: sdpbench.TCP, Processes: 1})
	require.ErrorContains(t, err, "1 processes: want at least 2")
	_, err = NewDataSet(t.TempDir(), "telescope", 1, 1)
	require.ErrorContains(t, err, `unknown application "telescope"`)
}

func TestAddress(t *testing.T) {
	a := address{netip.MustParseAddrPort("127.0.0.1:40000"), 4791}
	require.Equal(t, "127.0.0.1:40000/4791", a.String())
	b, err := parseAddress(a.String())
	require.NoError(t, err)
	require.Equal(t, a, b)
	for _, bad := range []string{"", "127.0.0.1:1", "127.0.0.1/5", "127.0.0.1:1/70000", "x/1"} {
		_, err := parseAddress(bad)
		require.ErrorContains(t, err, "want one like 127.0.0.1:40000/4791", bad)
	}
}

// TestRoom: a data set for which the memory does not suffice is refused with the numbers.
func TestRoom(t *testing.T) {
	require.NoError(t, checkRoom(1<<30, 4<<30))
	require.NoError(t, checkRoom(1<<30, 0), "unknown")
	err := checkRoom(1<<30, 3<<30)
	require.ErrorIs(t, err, ErrNoRoom)
	require.ErrorContains(t, err, "needs 4096 MiB of memory, 3072 MiB are available")
}

func TestTempDir(t *testing.T) {
	dir, err := TempDir()
	require.NoError(t, err)
	d, err := NewDataSet(dir, Isosurface, 1000, 1<<10)
	require.NoError(t, err)
	require.FileExists(t, d.path)
	require.NoError(t, d.Remove())
	require.NoError(t, os.Remove(dir), "it is empty")
}
