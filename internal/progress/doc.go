// Package progress implements the leader/follower pattern for goroutines that wait for a
// network which has no goroutine of its own. Of the goroutines in [Engine.Wait] one is
// the leader: it blocks in the network and handles the events of all. The others are
// followers. A follower is woken when its condition is met, or to lead when the leader
// leaves. A program of one goroutine thus waits in the adapter itself, without a context
// switch, and any number of goroutines may call.
//
//	e := progress.New(&mu, source)
//	mu.Lock()
//	err := e.Wait(ctx, request) // source's events until request.Ready
//	mu.Unlock()
//
// The engine has no lock and no goroutine: it uses the lock of its owner, which protects
// the conditions as well. A goroutine that changes one calls [Engine.Notify] before it
// releases the lock.
//
// # States
//
//	leader   followers  event                         next
//	none     none       Wait                          the caller leads
//	none     some       the woken follower runs       it leads
//	none     some       Wait, before that             the caller leads, and that one follows
//	leads    any        Wait                          the caller follows
//	leads    any        events of the network         ready followers leave
//	leads    any        Notify, leader ready          Source.Block is canceled; it leaves
//	leads    some       the leader is ready, its      it leaves and wakes one follower,
//	                    context ends, Block fails,    which leads
//	                    a method of Source panics
//	leads    some       a follower's context ends     it leaves
//	idle     none       Wait, Poll (RunIdle leads)    Source.Block is canceled; it leaves
//
// Between calls there is no leader without a goroutine in Wait or RunIdle, no ready
// goroutine that is not awake, and no waiting goroutine without a leader or one that has
// been woken to lead.
package progress
