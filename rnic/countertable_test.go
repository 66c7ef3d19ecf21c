package rnic

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/verbs"
)

// setNumbers sets every uint64 field of v, also of embedded structs, to a different value and
// returns their number.
func setNumbers(v reflect.Value, next uint64) uint64 {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			next = setNumbers(f, next)
		case reflect.Uint64:
			next++
			f.SetUint(next)
		default:
			panic("a counter that is not a uint64: " + v.Type().Field(i).Name)
		}
	}
	return next
}

// TestCounterTables compares each table with its struct: every field has one name, and every name
// one field and a description.
func TestCounterTables(t *testing.T) {
	t.Run("qp", func(t *testing.T) { checkTable[QPCounters](t, qpCounters, "", counterNames) })
	t.Run("device", func(t *testing.T) { checkTable[Counters](t, deviceCounters, "", counterNames) })
	t.Run("link", func(t *testing.T) { checkTable[LinkCounters](t, linkCounters, "link_", linkCounterNames) })
	t.Run("faults", func(t *testing.T) { checkTable[FaultCounters](t, faultCounters, "fault_", faultCounterNames) })
	require.Empty(t, CounterDescription("nosuch"))
	require.Len(t, deviceCounters, len(counterNames))
}

func checkTable[T any](t *testing.T, table counterTable, prefix string, descriptions []description) {
	var v T
	fields := setNumbers(reflect.ValueOf(&v).Elem(), 0)
	fieldOf := map[uint64]string{}
	for name, n := range table.all(reflect.ValueOf(v)) {
		require.Empty(t, fieldOf[n], "%s and %s are the same field", fieldOf[n], name)
		fieldOf[n] = name
		require.Regexp(t, `^[a-z][a-z0-9_]*$`, name)
		require.Regexp(t, `^[A-Z].*\.$`, CounterDescription(prefix+name))
	}
	require.Len(t, fieldOf, int(fields), "%T has fields without a name", v)
	names := map[string]bool{}
	for _, d := range descriptions {
		require.False(t, names[d.name], "%s twice", d.name)
		names[d.name] = true
	}
}

// TestRxeNames compares the names with the output of rdma-statistic(8) for rdma_rxe of Linux 6.1.
func TestRxeNames(t *testing.T) {
	text, err := os.ReadFile("testdata/rxe-hw-counters.txt")
	require.NoError(t, err)
	want := regexp.MustCompile(`[a-z_]+(?: 0)`).FindAllString(string(text), -1)
	require.Len(t, want, 15)
	for i, w := range want {
		require.Equal(t, strings.TrimSuffix(w, " 0"), deviceCounters[i].name)
	}
}

func TestCountersJSON(t *testing.T) {
	var c Counters
	setNumbers(reflect.ValueOf(&c).Elem(), 0)
	b, err := json.Marshal(c)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(b), `{"sent_pkts":1,"rcvd_pkts":2,"sent_bytes":3,`), "%s", b)
	var flat map[string]uint64
	require.NoError(t, json.Unmarshal(b, &flat))
	require.Len(t, flat, len(counterNames))
	var back Counters
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, c, back)

	var q QPCounters
	require.NoError(t, json.Unmarshal([]byte(`{"sent_pkts":18446744073709551615,"of_a_later_version":3}`), &q))
	require.Equal(t, QPCounters{SentPkts: 1<<64 - 1}, q)
	require.NoError(t, json.Unmarshal([]byte(`null`), &q))
	require.Equal(t, QPCounters{SentPkts: 1<<64 - 1}, q, "null changes nothing")
	for _, bad := range []string{`{"sent_pkts":-1}`, `{"sent_pkts":"1"}`, `[]`, `{`} {
		require.Error(t, json.Unmarshal([]byte(bad), &q), bad)
	}
}

// TestFaultCounters compares FaultCounters with the counters of the impairment.
func TestFaultCounters(t *testing.T) {
	var c impair.Counts
	v := reflect.ValueOf(&c).Elem()
	fields := 0
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Uint64 {
			fields++
			f.SetUint(uint64(fields))
		}
	}
	seen := map[uint64]bool{}
	for _, n := range faultCountersOf(c).All() {
		seen[n] = true
	}
	delete(seen, 0)
	require.Len(t, seen, fields)
}

// TestHWCounter checks access to the counters of a queue pair by name, for layers that do not
// import the struct.
func TestHWCounter(t *testing.T) {
	a, b := pair(t, Options{})
	b.recv(t, 1, 0, 64)
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}})
	a.poll1(t)
	q := a.qp.(*queuePair)
	n, ok := q.HWCounter("rdma_sends")
	require.True(t, ok)
	require.EqualValues(t, 1, n)
	for name := range (QPCounters{}).All() {
		_, ok := q.HWCounter(name)
		require.True(t, ok, name)
	}
	_, ok = q.HWCounter("nosuch")
	require.False(t, ok)
}
