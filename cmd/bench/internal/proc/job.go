package proc

import (
	"crypto/rand"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

// openJob starts the process manager of n ranks, which fails the group if a rank aborts the job.
func (g *Group) openJob(n int) (err error) {
	g.job, err = server.New(server.Options{Size: n, ID: rand.Text(), Notify: func(e server.Event) {
		if e.Kind == server.Abort {
			g.fail(g.procs[e.Rank].newWorkerError(fmt.Errorf("rank %d aborted the job with code %d: %s", e.Rank, e.Code, e.Why)))
		}
	}})
	if err == nil && !server.CanPair {
		g.port, err = server.Listen(server.PortOptions{Address: "127.0.0.1:0", Size: n, Secret: rand.Text(), OnRank: g.serveRank})
	}
	return err
}

// serveRank serves the connection of a rank until it ends.
func (g *Group) serveRank(rank int, c net.Conn) {
	g.ranks.Go(func() { _ = g.job.Serve(rank, c) }) // watchUntilExit reports a failed worker
}

// closeJob ends the process manager. The ranks have exited.
func (g *Group) closeJob() {
	if g.port != nil {
		g.port.Close()
	}
	g.ranks.Wait()
}
