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

	// AllocPD makes a protection domain (ibv_alloc_pd).
	AllocPD() (PD, error)

	// CreateCQ makes a completion queue with room for at least depth
	// completions (ibv_create_cq). CompChannel.CreateCQ makes one that
	// reports to a channel.
	CreateCQ(depth int) (CQ, error)

	// CreateCompChannel makes a completion channel
	// (ibv_create_comp_channel), on which one goroutine can wait for the
	// completions of any number of queues.
	CreateCompChannel() (CompChannel, error)

	// AsyncEvent waits for the next asynchronous event
	// (ibv_get_async_event). It returns the context's error, or ErrClosed
	// once the device is closed.
	AsyncEvent(ctx context.Context) (AsyncEvent, error)

	// Progress runs one non-blocking step of the adapter in the calling
	// goroutine and returns the number of packets handled. A loop that polls
	// memory instead of a completion queue must call it; on a hardware adapter
	// it does nothing.
	Progress() int

	// Close closes the device with all its objects. Queues are flushed, and
	// blocked waiters return ErrClosed. It is idempotent.
	io.Closer
}

// PD is a protection domain (ibv_pd): objects of different domains cannot be used
// together.
type PD interface {
	// RegMR registers buf (ibv_reg_mr). The memory is not copied, and stays
	// in place and alive until Close. An empty buffer, or remote write or
	// atomic access without local write, is refused; so is, with ErrFault,
	// memory that is not mapped, or not writable with AccessLocalWrite. Memory
	// that becomes so later fails the work that touches it: WCLocProtErr at
	// this end, WCRemOpErr at a peer that writes or reads it.
	RegMR(buf []byte, access AccessFlags) (MR, error)

	// AllocMW allocates a memory window of type 2B (ibv_alloc_mw), unbound.
	AllocMW() (MW, error)

	// CreateAH makes an address handle for UD sends (ibv_create_ah).
	CreateAH(attr AHAttr) (AH, error)

	// CreateSRQ makes a shared receive queue (ibv_create_srq).
	CreateSRQ(attr SRQInitAttr) (SRQ, error)

	// CreateQP makes a queue pair in StateReset (ibv_create_qp).
	CreateQP(attr QPInitAttr) (QP, error)

	// Close frees the domain (ibv_dealloc_pd), or returns ErrBusy while
	// objects of the domain exist.
	io.Closer
}

// MR is a registered memory region (ibv_mr).
type MR interface {
	Addr() uint64        // first address as work requests name it: real, or 0 with AccessZeroBased
	Len() int            // bytes
	Bytes() []byte       // the registered memory itself
	LKey() uint32        // key for local use in an SGE
	RKey() uint32        // key for remote use; 0 if no remote access was granted
	Access() AccessFlags // as registered

	// SGE names n bytes at offset off of the region for a work request. It
	// does not check the range: the adapter does when it uses it.
	SGE(off, n int) SGE

	// LoadUint64 reads the 8 bytes at offset off, in host byte order, with
	// acquire semantics. Offset and address must be multiples of 8. This is
	// how to poll memory: of a remote write to a multiple of 8, the last
	// aligned word that lies wholly in it is stored last, atomically, so once
	// that has its new value all of the write is visible. The word has 8 bytes
	// if it ends at a multiple of 8; otherwise 4, and LoadUint32 polls it. Odd
	// bytes behind it are there before it, and cannot be polled themselves.
	// The value of an atomic is stored the same way.
	LoadUint64(off int) uint64

	// LoadUint32 is LoadUint64 for 4 bytes.
	LoadUint32(off int) uint32

	// Close invalidates both keys (ibv_dereg_mr) and returns ErrBusy while a
	// memory window is bound to the region. When it has returned nil the
	// adapter no longer accesses the memory: outstanding work on it fails
	// with WCLocProtErr here or WCRemAccessErr at the peer.
	io.Closer
}

// MW is a memory window of type 2B (ibv_mw): remote access to a part of a
// region through one queue pair, bound by WRBindMW and ended by WRLocalInv or
// by the peer's WRSendWithInv.
type MW interface {
	RKey() uint32 // current key: the next bind must use IncRKey of it or another low byte

	// Close frees the window (ibv_dealloc_mw), also while it is bound.
	io.Closer
}

// AH is an address handle (ibv_ah): the destination of a UD message.
type AH interface {
	Attr() AHAttr
	io.Closer
}

// CompChannel is a completion channel (ibv_comp_channel): it reports which of its
// queues have had the event that they were armed for. The cost depends on the number
// of events only, not of queues. The loop of a waiter, with the queues armed once
// before:
//
//	cq, err := ch.Wait(ctx)
//	err = cq.ReqNotify(false) // first, so that no completion is missed
//	for cq.Len() > 0 {        // an empty Poll would drive the adapter once more
//		n, err := cq.Poll(wc)
//		...
//	}
type CompChannel interface {
	// CreateCQ makes a completion queue (ibv_create_cq with a channel). The
	// event that its ReqNotify arms goes to the channel, and CQ.Wait is
	// ErrInvalid; all else is as with a queue of Device.CreateCQ.
	CreateCQ(depth int) (CQ, error)

	// Wait blocks until a queue has had its event, and takes it
	// (ibv_get_cq_event and ibv_ack_cq_events in one): the queue whose event
	// is the oldest. A queue is listed at most once, however often it is armed
	// meanwhile. For an overrun queue the error is ErrCQOverrun. Otherwise an
	// error is the context's, ErrClosed of a closed channel or device, or that
	// of a failed device; pending events are returned first. Wait does not
	// drive the adapter.
	Wait(ctx context.Context) (CQ, error)

	// Handle makes the adapter call a function for events that it detects itself
	// while no goroutine drives it (comp_handler of the kernel's ib_create_cq).
	// This saves waking a waiter, which takes long while all processors compute.
	// The function runs in the adapter's own goroutine, for one event at a time
	// if the adapter has one engine. It may arm and poll queues and post; it must
	// be short, and neither wait nor close the device. The event is consumed if
	// it returns true; other events go to Wait. A channel has one handler until
	// it is closed; a second one is ErrInvalid. libibverbs has no such call.
	Handle(handler func(CQ) bool) error

	// Close frees the channel (ibv_destroy_comp_channel), ErrBusy while a
	// CQ reports to it. Blocked waiters return ErrClosed.
	io.Closer
}

// CQ is a completion queue (ibv_cq).
type CQ interface {
	// Poll takes up to len(wc) completions, oldest first, and returns how
	// many (ibv_poll_cq). It never blocks. On an empty queue it drives the
	// adapter one step first. After an overrun it returns ErrCQOverrun once
	// the earlier completions are consumed: the queue pairs that report to the
	// queue are in StateErr, and can only be closed with it.
	Poll(wc []WC) (int, error)

	// ReqNotify arms the queue (ibv_req_notify_cq): the next completion, or
	// with solicitedOnly the next solicited or failed one, makes Wait return,
	// CompChannel.Wait if the queue was made from a channel. One shot.
	// Completions that are already queued do not count, so look at Len, or
	// poll again, after arming and before waiting.
	ReqNotify(solicitedOnly bool) error

	// Disarm undoes ReqNotify: a program that polls again needs no event, which
	// would wake another thread. An event that has happened stays. libibverbs has
	// no such call.
	Disarm()

	// Wait blocks until the event that ReqNotify armed (ibv_get_cq_event and
	// ibv_ack_cq_events in one), the context's end, or ErrClosed. For a queue
	// that reports to a channel it is ErrInvalid.
	Wait(ctx context.Context) error

	// PollWait is Poll that blocks until at least one completion is queued. It
	// blocks forever, or until ctx ends, if nothing can complete: receives complete when a
	// message takes them, send requests always, except those without SendSignaled of
	// a queue pair with QPInitAttr.SelectiveSignaling.
	PollWait(ctx context.Context, wc []WC) (int, error)

	// Resize changes the depth to at least depth (ibv_resize_cq); ErrInvalid
	// if more completions are queued, ErrCQOverrun if completions were lost.
	Resize(depth int) error

	// Depth returns the capacity in completions.
	Depth() int

	// Len returns the number of queued completions. Unlike Poll it does not
	// drive the adapter. After ReqNotify it includes every completion that came
	// too early for the event (as IB_CQ_REPORT_MISSED_EVENTS in Linux).
	Len() int

	// Close frees the queue (ibv_destroy_cq), ErrBusy while a QP uses it.
	// Its pending event is dropped.
	io.Closer
}

// SRQ is a shared receive queue (ibv_srq).
type SRQ interface {
	// PostRecv posts receives and returns how many were accepted
	// (ibv_post_srq_recv). See QP.PostRecv.
	PostRecv(wrs []RecvWR) (int, error)

	// Modify changes the attributes that mask selects (ibv_modify_srq): the
	// size, or the limit, which arms EventSRQLimitReached once.
	Modify(attr SRQAttr, mask SRQAttrMask) error

	Query() (SRQAttr, error)
	io.Closer // ErrBusy while a QP uses it
}

// QP is a queue pair (ibv_qp). Its methods may be called from any goroutine;
// the order of concurrent posts is undefined.
type QP interface {
	Num() uint32 // queue pair number, 24 bits
	Type() QPType
	State() QPState

	// Modify changes the attributes that mask names (ibv_modify_qp). A
	// transition needs the attributes that the state table lists and accepts
	// no others: *TransitionError says which are missing or too many. To
	// StateReset drops all outstanding work without completions, and the queue
	// pair's completions that have not been polled, out of both queues, as
	// drivers of hardware do.
	Modify(attr QPAttr, mask QPAttrMask) error

	// Query returns the current attributes (ibv_query_qp).
	Query() (QPAttr, QPInitAttr)

	// PostSend posts a list of requests, each of which produces a completion unless the
	// queue pair has QPInitAttr.SelectiveSignaling, and returns how many were accepted
	// (the role of bad_wr in ibv_post_send); err explains the first that was
	// not. The list itself may be reused at once. The memory that its SGEs
	// name belongs to the adapter until the completion; inline data does not.
	// A full queue is ErrQueueFull, never a block.
	PostSend(wrs []SendWR) (int, error)

	// PostRecv posts receives (ibv_post_recv), to the same rules.
	PostRecv(wrs []RecvWR) (int, error)

	// AttachMcast and DetachMcast join and leave a multicast group with a UD
	// queue pair (ibv_attach_mcast).
	AttachMcast(group GID) error
	DetachMcast(group GID) error

	// Close frees the queue pair (ibv_destroy_qp). Outstanding work and
	// completions that have not been polled are dropped, as by a Modify to
	// StateReset, and its number is not reused for long; a receive of an SRQ
	// consumed by an unfinished message returns there. It is idempotent.
	io.Closer
}
