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

// coverage counts what happened in the worlds of a test, to see that they are
// worth their time.
type coverage struct {
	mu sync.Mutex
	n  map[string]uint64
}

// add takes over what a world has seen, when it is over.
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

// rare is what fewer worlds than so many need not see.
var rare = map[string]int64{
	"counter RetryExceededErr":    2000,          // nobody answers, however often one asks
	"counter RetryRNRExceededErr": math.MaxInt64, // rnr_retry is for ever
}

// check wants everything to have happened that so many worlds can do.
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
		"RC BIND_MW SUCCESS", "RC LOCAL_INV SUCCESS", "RC RECV SUCCESS", "RC RECV_RDMA_WITH_IMM SUCCESS",
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
