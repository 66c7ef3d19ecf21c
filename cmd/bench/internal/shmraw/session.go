package shmraw

import (
	"context"
	"os"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sharedfile"
)

const (
	worker  = "shmraw"
	roleEnd = "end"
)

// A Session is two processes that share memory and wait for requests. It is used by one goroutine
// only.
type Session struct{ *proc.Group }

// A request runs a round in both processes.
type request struct {
	Kind  kind
	Size  int           // bytes of a message
	Iters int           // of a latency
	For   time.Duration // of a bandwidth
}

type kind int

const (
	flagLatency kind = iota
	ringLatency
	ringBandwidth
)

// A reply is the result of the first process: the times, or the bytes and their time.
type reply struct {
	Latency *measure.Latency `json:",omitempty"`
	Bytes   int64            `json:",omitempty"`
	Elapsed time.Duration    `json:",omitempty"`
}

func init() { proc.RegisterArgs(worker, roleEnd, serveEnd) }

// Open starts the two processes. The caller must close the session.
func Open(ctx context.Context) (*Session, error) {
	path, err := sharedfile.Create(fileBytes)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path) // both processes have it open
	end := proc.Spec{Name: worker, Role: roleEnd, Args: path}
	g, err := proc.Start(ctx, proc.Options{Pin: true}, end, end)
	if err != nil {
		return nil, err
	}
	s := &Session{g}
	if _, err := s.run(ctx, request{Kind: flagLatency, Iters: 1}); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) run(ctx context.Context, r request) (reply, error) {
	return proc.CallFirst[request, reply](ctx, s.Group, r)
}

// FlagRounds returns rounds of iters round trips of a flag. The figure is half a round trip in
// microseconds.
func (s *Session) FlagRounds(iters int) measure.Round {
	return s.latencyRounds(request{Kind: flagLatency, Iters: iters})
}

// RingLatencyRounds returns rounds of iters round trips of a message through two rings. The figure is
// half a round trip in microseconds.
func (s *Session) RingLatencyRounds(size, iters int) measure.Round {
	return s.latencyRounds(request{Kind: ringLatency, Size: size, Iters: iters})
}

func (s *Session) latencyRounds(r request) measure.Round {
	return measure.MedianRounds(nil, func(ctx context.Context) (*measure.Latency, error) {
		first, err := s.run(ctx, r)
		return first.Latency, err
	})
}

// RingRounds returns rounds of messages through a ring for d. The figure is in MB/s.
func (s *Session) RingRounds(size int, d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) {
		first, err := s.run(ctx, request{Kind: ringBandwidth, Size: size, For: d})
		return measure.MBps(first.Bytes, first.Elapsed), err
	}
}
