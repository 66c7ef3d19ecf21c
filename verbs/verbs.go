package verbs

import (
	"context"
	"io"
)

// Device is an open adapter (ibv_context). All methods may be called from any
// goroutine.
type Device interface {
	// Name returns the device's name, for example "softrnic0".
	Name() string

	// QueryDevice returns the device's limits and identity (ibv_query_device).
	QueryDevice() DeviceAttr

	// QueryPort returns the state of a port, counted from 1 (ibv_query_port).
	QueryPort(port int) (PortAttr, error)

	// QueryGID returns one entry of a port's GID table (ibv_query_gid_ex).
	QueryGID(port, index int) (GIDEntry, error)

	// QueryClock reads the device's clock, which has an arbitrary zero and never
	// goes back, in nanoseconds (raw_clock of ibv_query_rt_values_ex). A
	// completion happened QueryClock() - WC.Time nanoseconds ago.
	QueryClock() int64

	// AllocPD creates a protection domain (ibv_alloc_pd).
	AllocPD() (PD, error)

	// CreateCQ creates a completion queue for at least depth completions
	// (ibv_create_cq). CompChannel.CreateCQ creates one with a channel.
	CreateCQ(depth int) (CQ, error)

	// CreateCompChannel creates a completion channel
	// (ibv_create_comp_channel), on which one goroutine can wait for the
	// events of any number of completion queues.
	CreateCompChannel() (CompChannel, error)

	// AsyncEvent waits for the next asynchronous event
	// (ibv_get_async_event). It returns the error of ctx, or ErrClosed when the
	// device is closed.
	AsyncEvent(ctx context.Context) (AsyncEvent, error)

	// Progress makes progress once without blocking, as an empty CQ.Poll does,
	// and returns the number of packets handled. A loop that polls memory
	// instead of a completion queue must call it. With a hardware adapter it
	// would do nothing.
	Progress() int

	// Close closes the device and all its objects. Outstanding work is flushed,
	// and blocked calls return ErrClosed. It is idempotent.
	io.Closer
}

// PD is a protection domain (ibv_pd): objects of different domains cannot be used
// together.
type PD interface {
	// RegMR registers buf (ibv_reg_mr). The memory is not copied; the region
	// keeps it alive until Close. An empty buffer is refused, and remote write
	// or atomic access without AccessLocalWrite. Memory that the process cannot
	// access in this way is an ErrFault. If it becomes inaccessible later, work
	// that accesses it fails, with WCLocProtErr here and WCRemOpErr at a peer.
	RegMR(buf []byte, access AccessFlags) (MR, error)

	// RegMRAt registers buf so that work requests and peers name its first byte iova
	// instead of its virtual address (ibv_reg_mr_iova). AccessZeroBased is refused.
	RegMRAt(buf []byte, iova uint64, access AccessFlags) (MR, error)

	// AllocMW allocates a memory window of type 2B (ibv_alloc_mw), unbound.
	AllocMW() (MW, error)

	// AllocMWType1 allocates a memory window of type 1, unbound. It serves all
	// queue pairs of the domain, and only another bind ends a binding. An
	// adapter with several engines returns ErrUnsupported: one engine cannot end
	// the accesses of another. Windows of type 2 are safer.
	AllocMWType1() (MW, error)

	// CreateAH creates an address handle for UD sends (ibv_create_ah).
	CreateAH(attr AHAttr) (AH, error)

	// CreateSRQ creates a shared receive queue (ibv_create_srq).
	CreateSRQ(attr SRQInitAttr) (SRQ, error)

	// CreateQP creates a queue pair in StateReset (ibv_create_qp).
	CreateQP(attr QPInitAttr) (QP, error)

	// Close frees the domain (ibv_dealloc_pd), or returns ErrBusy while
	// objects of the domain exist.
	io.Closer
}

// MR is a registered memory region (ibv_mr).
type MR interface {
	Addr() uint64        // first address for work requests: a virtual address, 0 with AccessZeroBased, or that of RegMRAt
	Len() int            // bytes
	Bytes() []byte       // the registered memory itself
	LKey() uint32        // key for local use in an SGE
	RKey() uint32        // key for remote use; 0 without remote access
	Access() AccessFlags // as registered

	// SGE returns the scatter/gather element of n bytes at offset off of the
	// region. The adapter checks the range when it executes the request.
	SGE(off, n int) SGE

	// LoadUint64 loads the 8 bytes at offset off, in host byte order, with
	// acquire semantics. Offset and address must be multiples of 8.
	//
	// A program polls memory with it, on a device with
	// DeviceAttr.OrderedWrites. The last aligned word that lies completely in
	// the data of a remote write is stored last and atomically, so that the
	// whole write is visible when the word has its new value. The
	// word has 8 bytes if it ends at a multiple of 8; otherwise it has 4, for
	// LoadUint32. Bytes behind the word are stored before it and cannot be
	// polled. The write must start at a multiple of 8 if it is longer than a
	// packet. The result of an atomic is stored in the same way.
	LoadUint64(off int) uint64

	// LoadUint32 is LoadUint64 for 4 bytes.
	LoadUint32(off int) uint32

	// Close deregisters the region and invalidates its keys (ibv_dereg_mr), or
	// returns ErrBusy while a memory window is bound to it. After it has
	// returned nil the adapter no longer accesses the memory: outstanding work
	// fails with WCLocProtErr here or WCRemAccessErr at the peer.
	io.Closer
}

// MW is a memory window (ibv_mw): remote access to a part of a region, bound by
// WRBindMW. One of type 2B serves the queue pair that bound it, until WRLocalInv
// or the peer's WRSendWithInv. One of type 1 serves all queue pairs of its domain,
// until it is bound again, with Length 0 to nothing.
type MW interface {
	RKey() uint32 // current key; the next bind must change its low byte, for example by IncRKey

	// Close frees the window (ibv_dealloc_mw), also while it is bound.
	io.Closer
}

// AH is an address handle (ibv_ah): the destination of a UD message.
type AH interface {
	Attr() AHAttr
	io.Closer
}

// CompChannel is a completion channel (ibv_comp_channel): the source of the events of
// its completion queues. Its cost grows with the number of events, not of queues. The
// queues are armed once, and then a goroutine repeats:
//
//	cq, err := ch.Wait(ctx)
//	err = cq.ReqNotify(false) // first, so that no completion is missed
//	for cq.Len() > 0 {        // a Poll of an empty queue would read the network once more
//		n, err := cq.Poll(wc)
//		...
//	}
type CompChannel interface {
	// CreateCQ creates a completion queue (ibv_create_cq with a channel). The
	// events that its ReqNotify arms go to the channel, and CQ.Wait returns
	// ErrInvalid.
	CreateCQ(depth int) (CQ, error)

	// Wait blocks until a queue has an event, consumes the event and returns
	// the queue (ibv_get_cq_event and ibv_ack_cq_events). The oldest event is
	// first. A queue has at most one pending event. For an overrun queue the
	// error is ErrCQOverrun. Otherwise an error is that of ctx, ErrClosed of a
	// closed channel or device, or that of a failed device; pending events are
	// returned before. Wait does not make progress, see Device.Progress.
	Wait(ctx context.Context) (CQ, error)

	// Handle makes the adapter call handler for the events that its own
	// goroutine detects, while no goroutine of the program makes progress
	// (comp_handler of the kernel's ib_create_cq). This saves waking a waiter,
	// which takes long while all processors compute. The handler may arm and
	// poll queues and post; it must not block or close the device. The event is
	// consumed if it returns true; other events go to Wait. A channel has one
	// handler; a second Handle returns ErrInvalid. An adapter with several
	// engines may call it concurrently. A panic of the handler ends the process.
	// libibverbs has no such call.
	Handle(handler func(CQ) bool) error

	// Close frees the channel (ibv_destroy_comp_channel), or returns ErrBusy
	// while a completion queue uses it. Blocked calls return ErrClosed.
	io.Closer
}

// CQ is a completion queue (ibv_cq).
type CQ interface {
	// Poll removes up to len(wc) completions from the queue, the oldest first,
	// and returns their number (ibv_poll_cq). It does not block. If the queue is
	// empty, it makes progress once, see Device.Progress. After an overrun it
	// returns the earlier completions and then ErrCQOverrun: the queue pairs
	// that use the queue are in StateErr and can only be closed with it.
	Poll(wc []WC) (int, error)

	// ReqNotify arms the queue for one event (ibv_req_notify_cq): the next
	// completion, or with solicitedOnly the next solicited or failed one, makes
	// Wait return, or CompChannel.Wait if the queue belongs to a channel.
	// Completions that are queued already raise no event, so check Len, or
	// poll, after arming and before waiting.
	ReqNotify(solicitedOnly bool) error

	// Disarm undoes ReqNotify: a program that polls needs no event, which would
	// wake another goroutine. An event that was raised before remains.
	// libibverbs has no such call.
	Disarm()

	// Wait blocks until the event for which ReqNotify has armed the queue, and
	// consumes it (ibv_get_cq_event and ibv_ack_cq_events). It returns the error
	// of ctx if that ends first, and ErrClosed if the queue or the device is
	// closed. For a queue of a channel it returns ErrInvalid.
	Wait(ctx context.Context) error

	// PollWait is Poll that blocks until a completion is queued or ctx ends. It
	// blocks forever if nothing can complete: a receive completes when a message
	// consumes it, and a send request always, except one without SendSignaled on
	// a queue pair with QPInitAttr.SelectiveSignaling.
	PollWait(ctx context.Context, wc []WC) (int, error)

	// RecordTimes makes later completions have a WC.Time, or no longer if on is
	// false (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP of ibv_create_cq_ex). A time
	// costs a clock reading per completion.
	RecordTimes(on bool)

	// Resize changes the capacity to at least depth (ibv_resize_cq). It returns
	// ErrInvalid if more completions are queued, and ErrCQOverrun if completions
	// were lost.
	Resize(depth int) error

	// Depth returns the capacity in completions.
	Depth() int

	// Len returns the number of queued completions. Unlike Poll it does not
	// make progress. After ReqNotify it counts every completion that raises no
	// event because it came before (as IB_CQ_REPORT_MISSED_EVENTS in Linux).
	Len() int

	// Close frees the queue (ibv_destroy_cq), or returns ErrBusy while a queue
	// pair uses it. A pending event is dropped.
	io.Closer
}

// SRQ is a shared receive queue (ibv_srq).
type SRQ interface {
	// PostRecv posts receives and returns the number accepted
	// (ibv_post_srq_recv). See QP.PostRecv.
	PostRecv(wrs []RecvWR) (int, error)

	// Modify changes the attributes that mask selects (ibv_modify_srq): the
	// size, or the limit, which arms EventSRQLimitReached once.
	Modify(attr SRQAttr, mask SRQAttrMask) error

	// Query returns the current attributes (ibv_query_srq).
	Query() (SRQAttr, error)

	// Close frees the queue (ibv_destroy_srq), or returns ErrBusy while a queue
	// pair uses it.
	io.Closer
}

// QP is a queue pair (ibv_qp). Its methods may be called from any goroutine;
// the order of concurrent posts is undefined.
type QP interface {
	Num() uint32 // queue pair number, 24 bits
	Type() QPType
	State() QPState

	// Modify changes the attributes that mask selects (ibv_modify_qp). Each
	// transition requires some attributes and allows some others; a
	// *TransitionError lists the missing and the extra ones. A transition to
	// StateReset drops all outstanding work, and the completions of the queue
	// pair that have not been polled, as drivers of hardware do.
	Modify(attr QPAttr, mask QPAttrMask) error

	// Query returns the current attributes (ibv_query_qp).
	Query() (QPAttr, QPInitAttr)

	// PostSend posts send requests and returns the number accepted
	// (ibv_post_send; the number replaces bad_wr). err is that of the first
	// request not accepted. Each request produces a completion, unless the
	// queue pair has QPInitAttr.SelectiveSignaling. wrs and its SGLists may be
	// reused when PostSend returns; the memory that the SGEs refer to belongs
	// to the adapter until the completion. PostSend does not block: if the
	// queue is full, err is ErrQueueFull.
	PostSend(wrs []SendWR) (int, error)

	// PostRecv posts receives and returns the number accepted (ibv_post_recv).
	// Slices and memory belong to the adapter as with PostSend.
	PostRecv(wrs []RecvWR) (int, error)

	// AttachMcast makes a UD queue pair a member of a multicast group
	// (ibv_attach_mcast).
	AttachMcast(group GID) error

	// DetachMcast undoes AttachMcast (ibv_detach_mcast).
	DetachMcast(group GID) error

	// Close frees the queue pair (ibv_destroy_qp). Outstanding work and
	// completions that have not been polled are dropped, as by a transition to
	// StateReset. A receive of an SRQ that an incomplete message has consumed
	// returns to the SRQ. The number of the queue pair is quarantined.
	io.Closer
}
