package pt2pt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// requestStates are the states of a request in a wait for several.
var requestStates = []struct {
	name         string
	active, done bool
	make         func(c *Comm) *Request
}{
	{"null", false, true, func(*Comm) *Request { return nil }},
	{"zero", false, true, func(*Comm) *Request { return &Request{} }},
	{"inactive", false, true, func(c *Comm) *Request {
		r, _ := c.RecvInit(datatype.Buffer{}, 0, 9)
		return r
	}},
	{"pending", true, false, func(c *Comm) *Request {
		r, _ := c.Irecv(datatype.Buffer{}, 0, 9)
		return r
	}},
	{"done", true, true, func(c *Comm) *Request {
		r, _ := c.Irecv(datatype.Buffer{}, comm.ProcNull, 9)
		return r
	}},
	{"persistent and done", true, true, func(c *Comm) *Request {
		r, _ := c.RecvInit(datatype.Buffer{}, comm.ProcNull, 9)
		_ = r.Start()
		return r
	}},
	{"of the null communicator", true, true, func(*Comm) *Request {
		r, _ := NewNullComm(failCall).Irecv(datatype.Buffer{}, 0, 9)
		return r
	}},
}

// TestConditions tests all combinations of three requests: which of them TestAny, TestSome and
// TestAll find.
func TestConditions(t *testing.T) {
	n := len(requestStates)
	for at := range n * n * n {
		c := newSelf(t, false)
		chosen := []int{at % n, at / n % n, at / n / n}
		names, first, all, active := []string{}, comm.Undefined, true, false
		build := func() (rs []*Request) {
			for _, i := range chosen {
				rs = append(rs, requestStates[i].make(c))
			}
			return rs
		}
		var done []int
		for i, at := range chosen {
			s := requestStates[at]
			names = append(names, s.name)
			if s.active && s.done {
				done = append(done, i)
				if first == comm.Undefined {
					first = i
				}
			}
			all, active = all && s.done, active || s.active
		}
		i, _, ok, _ := TestAny(build())
		require.Equal(t, first, i, names)
		require.Equal(t, first != comm.Undefined || !active, ok, names)
		var found []int
		_ = TestSome(build(), func(i int, _ Status) { found = append(found, i) })
		require.Equal(t, done, found, names)
		require.Equal(t, all, TestAll(build()), names)
	}
}
