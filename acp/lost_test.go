package acp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// stage is the state of two ranks when one of them dies.
type stage string

var stages = []stage{"connecting", "idle", "transfer", "free"}

// TestPeerDies kills rank 1 in each state of a channel with rank 0, as sender and as receiver.
// Every wait of rank 0 fails with an error that names rank 1, and its channel with rank 2 is not
// affected.
func TestPeerDies(t *testing.T) { dieInAll(t, acp.RC) }

// TestPeerDiesOverDatagrams is TestPeerDies over UD.
func TestPeerDiesOverDatagrams(t *testing.T) { dieInAll(t, acp.UD) }

// dieInAll runs all jobs in parallel, because they mostly wait.
func dieInAll(t *testing.T, net acp.Net) {
	var work sync.WaitGroup
	var errs [8]error
	for i := range errs {
		s, sends := stages[i/2], i%2 == 0
		imm := i/2%2 != i%2
		work.Go(func() {
			if err := die(net, acp.ChannelOptions{SlotSize: 64, Slots: 2, Imm: imm}, s, sends); err != nil {
				errs[i] = fmt.Errorf("%s, rank 0 sends: %v, imm: %v: %w", s, sends, imm, err)
			}
		})
	}
	work.Wait()
	require.NoError(t, errors.Join(errs[:]...))
}

func die(net acp.Net, o acp.ChannelOptions, s stage, sends bool) error {
	from, to := 1, 0
	if sends { // rank 0 sends
		from, to = 0, 1
	}
	ready, dead := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make(chan error, 3)
	var through sync.WaitGroup // both ranks wait for each other at the end
	through.Add(2)
	for rank, m := range pmi.NewLocal(3) {
		go func() {
			var dev *rnic.Device
			p, err := acp.Init(func() (_ verbs.Device, err error) {
				dev, err = rnic.Open(rnic.Options{})
				return dev, err
			}, acp.Options{Manager: m, Net: net, ProbeDelay: 50 * time.Millisecond,
				CM:  cm.Options{Retries: 4},
				RDM: rdm.Options{GiveUp: time.Second}})
			if err != nil {
				if rank != 1 {
					through.Done()
				}
				errs <- err
				return
			}
			switch rank {
			case 0:
				err = runSurvivor(ctx, p, from, to, o, s, ready, dead)
			case 1:
				err = runUntilDeath(ctx, p, from, to, o, s)
				if err == nil {
					<-ready
				}
				_ = dev.SetImpair("loss 100%") // the disconnect must not arrive
				close(dead)
			case 2:
				err = runBystander(ctx, p, o)
			}
			if rank != 1 {
				if err != nil {
					cancel(err)
				}
				through.Done()
				through.Wait()
			}
			if rank != 1 && err == nil {
				if lost := p.Finalize(ctx); lost == nil {
					err = fmt.Errorf("rank %d: no rank has failed", rank)
				}
			} else {
				_ = p.Close()
			}
			if err != nil {
				cancel(err) // the other ranks need not wait
			}
			errs <- err
		}()
	}
	return errors.Join(<-errs, <-errs, <-errs)
}

// runUntilDeath is rank 1's program until it dies.
func runUntilDeath(ctx context.Context, p *acp.Process, from, to int, o acp.ChannelOptions, s stage) error {
	if s == "connecting" {
		return nil
	}
	ch, err := p.NewChannel(from, to, o)
	if err != nil {
		return err
	}
	r := ch.Recv(make([]byte, 8))
	if from == 1 {
		r = ch.Send(make([]byte, 8))
	}
	_, err = r.Wait(ctx)
	return err
}

// runSurvivor is rank 0's program.
func runSurvivor(ctx context.Context, p *acp.Process, from, to int, o acp.ChannelOptions, s stage, ready, dead chan struct{}) error {
	ch, err := p.NewChannel(from, to, o)
	if err != nil {
		return err
	}
	other, err := p.NewChannel(0, 2, o)
	if err != nil {
		return err
	}
	use := func(n int) *acp.Request {
		if from == 0 {
			return ch.Send(make([]byte, n))
		}
		return ch.Recv(make([]byte, n))
	}
	if s != "connecting" {
		if _, err := use(8).Wait(ctx); err != nil {
			return err
		}
	}
	var r *acp.Request
	if s == "transfer" {
		r = use(10000)
	}
	close(ready)
	<-dead
	if r == nil && s != "free" {
		r = use(10000)
	}
	if s == "free" {
		r = ch.Free()
	}
	if _, err := r.Wait(ctx); !lostOrFreed(err, s, from == 0) {
		return fmt.Errorf("%s: %w", s, err)
	}
	for i := range 20 {
		if _, err := other.Send(message(100, i)).Wait(ctx); err != nil {
			return fmt.Errorf("with rank 2: %w", err)
		}
	}
	if _, err := other.Free().Wait(ctx); err != nil {
		return err
	}
	if s == "free" {
		return nil
	}
	for _, again := range []*acp.Request{use(8), ch.Free()} {
		if _, err := again.Wait(ctx); !lostOrFreed(err, s, false) {
			return fmt.Errorf("%s, once more: %w", s, err)
		}
	}
	return nil
}

// lostOrFreed reports whether an error names the lost rank. A sender's Free may have succeeded
// before.
func lostOrFreed(err error, s stage, sender bool) bool {
	return errors.Is(err, acp.ErrLost) || err == nil && s == "free" && sender
}

// runBystander is rank 2's program: it receives all messages.
func runBystander(ctx context.Context, p *acp.Process, o acp.ChannelOptions) error {
	ch, err := p.NewChannel(0, 2, o)
	if err != nil {
		return err
	}
	buf := make([]byte, 100)
	for i := range 20 {
		if n, err := ch.Recv(buf).Wait(ctx); err != nil || string(buf[:n]) != string(message(100, i)) {
			return fmt.Errorf("message %d at rank 2: %d bytes, %w", i, n, err)
		}
	}
	_, err = ch.Free().Wait(ctx)
	return err
}

// TestSignalsOutliveRepair checks that a busy rank still receives the signals that were sent before an
// unrelated operation was refused and the connection was replaced.
func TestSignalsOutliveRepair(t *testing.T) {
	busy, refused := make(chan struct{}), make(chan struct{})
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64, Imm: true})
		require.NoError(t, err)
		mine, all, err := share(p, make([]byte, 64))
		require.NoError(t, err)
		if p.Rank() == 0 {
			require.NoError(t, p.Complete(ctx, p.Copy(all[1], mine.GA(0), 8, acp.None)), "it is known from now on")
			_, err := ch.Send([]byte("first")).Wait(ctx)
			require.NoError(t, err)
		} else if _, err := ch.Recv(make([]byte, 8)).Wait(ctx); err != nil {
			return err
		} else if err := mine.Close(); err != nil {
			return err
		}
		require.NoError(t, p.Sync(ctx))
		if p.Rank() == 0 {
			defer func() {
				select {
				case <-refused:
				default:
					close(refused)
				}
			}()
			select {
			case <-busy:
			case <-ctx.Done():
				return ctx.Err()
			}
			_, err := ch.Send([]byte("second")).Wait(ctx)
			require.NoError(t, err)
			require.ErrorIs(t, p.Complete(ctx, p.Copy(all[1], mine.GA(0), 8, acp.None)), acp.ErrRegion)
			require.NoError(t, p.Complete(ctx, p.Copy(mine.GA(0), p.StarterGA(1), 8, acp.None)), "by another connection")
			require.Positive(t, p.Stats().Repaired)
			close(refused)
			return p.Sync(ctx)
		}
		close(busy)
		<-refused
		buf := make([]byte, 8)
		if n, err := ch.Recv(buf).Wait(ctx); err != nil || string(buf[:n]) != "second" {
			return fmt.Errorf("%q: %w", buf[:n], err)
		}
		require.Zero(t, p.Stats().StraySignals)
		return p.Sync(ctx)
	}))
}
