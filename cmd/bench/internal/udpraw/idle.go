package udpraw

import (
	"context"
	"net"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

const roleIdle = "idle"

func init() { proc.Register(worker, roleIdle, serveIdle) }

// serveIdle is a process that waits for a packet in package net.
func serveIdle(ctx context.Context, w *proc.Worker) error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	defer func() {
		conn.Close()
		<-ended
	}()
	return proc.Serve(ctx, w, measure.IdleUsage)
}

// Idle is a process with one socket that waits for a packet, the baseline of an idle adapter.
type Idle struct{ *proc.Group }

// OpenIdle starts the process. The caller must close the session.
func OpenIdle(ctx context.Context) (*Idle, error) {
	g, err := proc.Start(ctx, proc.Options{}, proc.Spec{Name: worker, Role: roleIdle})
	if err != nil {
		return nil, err
	}
	return &Idle{g}, nil
}

// Usage returns the usage of the process while it waits for d.
func (i *Idle) Usage(ctx context.Context, d time.Duration) (measure.Usage, error) {
	return proc.CallFirst[time.Duration, measure.Usage](ctx, i.Group, d)
}
