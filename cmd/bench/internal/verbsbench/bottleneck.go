package verbsbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A Bottleneck is a device whose link has a rate and a buffer (rnic.Options.Impair), with streams of
// RDMA writes through it to another device of this process.
type Bottleneck struct {
	from, to *rnic.Device
	flows    []*bottleneckFlow
	probe    *bottleneckFlow // single writes, of which each waits for the queue
	tcp      *tcpStream      // beside them, or nil
	closers  []func() error
}

// A BottleneckConfig describes a Bottleneck.
type BottleneckConfig struct {
	Rate       string // of the link, such as "200mbit"
	Buffer     int    // packets
	Flows      int
	Congestion string // rnic.Options.Congestion of both devices
}

// A TokenBucketConfig describes a Bottleneck between network namespaces.
type TokenBucketConfig struct {
	Rate   string // of the link, such as "200mbit"
	Buffer int    // bytes
	MTU    int    // bytes
	Flows  int
	TCP    string // congestion control of a stream of TCP beside the others, or ""
}

// bottleneckMessage and bottleneckDepth are the bytes of a write, and the writes in flight of each stream.
const (
	bottleneckMessage = 16 << 10
	bottleneckDepth   = 64
)

// A bottleneckFlow is a connected queue pair with its completion queue and memory.
type bottleneckFlow struct {
	qp   verbs.QP
	cq   verbs.CQ
	wr   verbs.SendWR
	done atomic.Int64 // completed writes
}

// OpenBottleneck opens the devices and connects the queue pairs.
func OpenBottleneck(c BottleneckConfig) (b *Bottleneck, err error) {
	b = &Bottleneck{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	o := rnic.Options{AnyPort: true, Congestion: c.Congestion, NoSharedMemory: true}
	if b.to, err = rnic.Open(o); err != nil {
		return b, err
	}
	o.Impair = fmt.Sprintf("rate %s limit %d", c.Rate, c.Buffer)
	if b.from, err = rnic.Open(o); err != nil {
		return b, err
	}
	return b, b.connectFlows(c.Flows)
}

// connectFlows connects n streams and the probe.
func (b *Bottleneck) connectFlows(n int) (err error) {
	for range n {
		f, err := b.connectFlow(bottleneckMessage)
		if err != nil {
			return err
		}
		b.flows = append(b.flows, f)
	}
	b.probe, err = b.connectFlow(8)
	return err
}

// connectFlow connects a queue pair whose writes have the given size.
func (b *Bottleneck) connectFlow(size int) (*bottleneckFlow, error) {
	f := &bottleneckFlow{}
	var peers [2]verbs.QP
	var memory [2]verbs.MR
	var ends [2]verbs.Endpoint
	for i, dev := range []*rnic.Device{b.from, b.to} {
		pd, err := dev.AllocPD()
		if err != nil {
			return nil, err
		}
		cq, err := dev.CreateCQ(2 * bottleneckDepth)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			f.cq = cq
		}
		if memory[i], err = pd.RegMR(make([]byte, size), verbs.AccessLocalWrite|verbs.AccessRemote); err != nil {
			return nil, err
		}
		limits := verbs.QPCap{MaxSendWR: bottleneckDepth, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
		if peers[i], err = pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, Cap: limits}); err != nil {
			return nil, err
		}
		if ends[i], err = verbs.LocalEndpoint(dev, peers[i], 1); err != nil {
			return nil, err
		}
	}
	for i, q := range peers {
		if err := verbs.Connect(q, ends[i], ends[1-i], verbs.ConnectOptions{AckTimeout: ackTimeout}); err != nil {
			return nil, err
		}
	}
	f.qp = peers[0]
	f.wr = verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{memory[0].SGE(0, size)},
		RemoteAddr: memory[1].Addr(), RKey: memory[1].RKey()}
	return f, nil
}

// stream keeps depth writes in flight until ctx ends, waits for them, and calls each with the time of
// every completion.
func (f *bottleneckFlow) stream(ctx context.Context, depth int, each func()) error {
	var wcs [bottleneckDepth]verbs.WC
	for inFlight := 0; ; {
		for ; inFlight < depth && ctx.Err() == nil; inFlight++ {
			if _, err := f.qp.PostSend([]verbs.SendWR{f.wr}); err != nil {
				return err
			}
		}
		if inFlight == 0 {
			return nil
		}
		n, err := f.cq.PollWait(context.WithoutCancel(ctx), wcs[:])
		if err != nil {
			return err
		}
		for i := range n {
			if wcs[i].Status != verbs.WCSuccess {
				return fmt.Errorf("%w: %w", ErrQPFailed, wcs[i].Err())
			}
			f.done.Add(1)
			each()
		}
		inFlight -= n
	}
}

// Shares is the result of Bottleneck.Measure.
type Shares struct {
	MBps  []float64     // of each stream
	TCP   float64       // MB/s of the stream of TCP, if there is one
	Delay time.Duration // median of a write of 8 bytes beside the streams
}

// JainIndex returns Jain's index of fairness of the streams: 1 for equal rates, 1/n if one of n has
// everything.
func (s Shares) JainIndex() float64 {
	sum, squares := 0.0, 0.0
	for _, x := range s.MBps {
		sum, squares = sum+x, squares+x*x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / squares / float64(len(s.MBps))
}

// Measure runs the streams for warmup and then for d, of which it returns the shares. The Bottleneck
// cannot be measured again.
func (b *Bottleneck) Measure(ctx context.Context, warmup, d time.Duration) (s Shares, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	failed := make(chan error, len(b.flows)+1)
	for _, f := range b.flows {
		group.Go(func() { failed <- f.stream(running, bottleneckDepth, func() {}) })
	}
	var mu sync.Mutex
	var delays []time.Duration
	last := time.Now()
	group.Go(func() {
		failed <- b.probe.stream(running, 1, func() {
			mu.Lock()
			delays = append(delays, time.Since(last))
			mu.Unlock()
			time.Sleep(time.Millisecond)
			last = time.Now()
		})
	})
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	wait(warmup)
	before := make([]int64, len(b.flows))
	for i, f := range b.flows {
		before[i] = f.done.Load()
	}
	mu.Lock()
	delays = delays[:0]
	mu.Unlock()
	start, tcpBefore := time.Now(), int64(0)
	if b.tcp != nil {
		tcpBefore = b.tcp.received.Load()
	}
	wait(d)
	if b.tcp != nil {
		s.TCP = float64(b.tcp.received.Load()-tcpBefore) / 1e6 / time.Since(start).Seconds()
	}
	for i, f := range b.flows {
		s.MBps = append(s.MBps, float64((f.done.Load()-before[i])*bottleneckMessage)/1e6/time.Since(start).Seconds())
	}
	mu.Lock()
	if slices.Sort(delays); len(delays) > 0 {
		s.Delay = delays[len(delays)/2]
	} else {
		s.Delay = time.Since(last) // the probe has waited for all of d
	}
	mu.Unlock()
	stop()
	group.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return s, err
}

// Close closes the devices.
func (b *Bottleneck) Close() (err error) {
	if b.tcp != nil {
		err = b.tcp.Close()
	}
	for _, dev := range []*rnic.Device{b.from, b.to} {
		if dev != nil {
			err = errors.Join(err, dev.Close())
		}
	}
	for _, f := range b.closers {
		err = errors.Join(err, f())
	}
	return err
}
