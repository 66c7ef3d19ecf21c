package sim_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// coverage counts the events in the worlds of a test, to check that the worlds cover them.
type coverage struct {
	mu sync.Mutex
	n  map[string]uint64
}

// add adds the events of a world that has ended.
func (c *coverage) add(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range w.seen {
		c.n[what] += n
	}
	for _, h := range w.hosts {
		s := h.dev.Stats()
		v := reflect.ValueOf(s.Counters.QPCounters)
		for i := range v.NumField() {
			c.n["counter "+v.Type().Field(i).Name] += v.Field(i).Uint()
		}
		for reason, n := range s.Drops {
			c.n["drop "+reason] += n
		}
		c.n["link ReceiveOverflow"] += s.Link.ReceiveOverflow
	}
}

// rare has the minimum number of worlds in which an event must be covered.
var rare = map[string]int64{
	"counter RetryExceededErr":    2000,          // no response to any number of requests
	"counter RetryRNRExceededErr": math.MaxInt64, // rnr_retry has no limit
}

// check checks that every event possible in this number of worlds has happened.
func (c *coverage) check(t *testing.T, worlds int64) {
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(c.n)) {
		lines = append(lines, fmt.Sprintf("%-40s %d", what, c.n[what]))
	}
	t.Log("\n" + strings.Join(lines, "\n"))
	for what, n := range c.n {
		if n == 0 && strings.HasPrefix(what, "counter ") && worlds >= rare[what] {
			t.Errorf("no world has seen %s", what)
		}
	}
	for _, what := range []string{
		"RC SEND SUCCESS", "RC RDMA_WRITE SUCCESS", "RC RDMA_READ SUCCESS", "RC FETCH_ADD SUCCESS", "RC COMP_SWAP SUCCESS",
		"RC ATOMIC_WRITE SUCCESS", "RC FLUSH SUCCESS", "RC BIND_MW SUCCESS", "RC LOCAL_INV SUCCESS", "RC RECV SUCCESS", "RC RECV_RDMA_WITH_IMM SUCCESS",
		"UC SEND SUCCESS", "UC RECV SUCCESS", "UC RDMA_WRITE SUCCESS", "UC RECV_RDMA_WITH_IMM SUCCESS",
		"UD SEND SUCCESS", "UD RECV SUCCESS", "message with invalidate", "request through a window",
		"failure WR_FLUSH_ERR", "failure RETRY_EXC_ERR", "failure REM_ACCESS_ERR", "failure LOC_PROT_ERR",
		"event SQ_DRAINED", "event SRQ_LIMIT_REACHED", "event QP_LAST_WQE_REACHED", "event QP_ACCESS_ERR",
		"drop bad_icrc", "drop duplicate", "drop out_of_sequence", "drop unknown_qpn", "drop qp_state", "drop no_receive", "drop bad_qkey",
		"link ReceiveOverflow",
	} {
		if c.n[what] == 0 {
			t.Errorf("no world has seen %s", what)
		}
	}
}
