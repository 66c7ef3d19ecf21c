package debugclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/internal/debug"
)

// A Peer is a device served by a process.
type Peer struct {
	Client *Client
	PID    int
	Report Report
	Err    error // the error of the query for Report, or nil
}

// Discover queries every device that a process of this user serves at Auto,
// ordered by process. It removes the stale sockets of ended processes.
func Discover(ctx context.Context) ([]Peer, error) {
	var peers []Peer
	for _, dir := range debug.Directories() {
		sockets, err := debug.Sockets(dir)
		if err != nil {
			return nil, err
		}
		for _, s := range sockets {
			peers = append(peers, Peer{Client: newClient(s.Address), PID: s.PID})
		}
	}
	var pending sync.WaitGroup
	for i := range peers {
		pending.Go(func() { peers[i].queryReport(ctx) })
	}
	pending.Wait()
	peers = slices.DeleteFunc(peers, func(p Peer) bool { return p.Client == nil })
	slices.SortFunc(peers, func(a, b Peer) int {
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return strings.Compare(a.Client.addr, b.Client.addr)
	})
	return peers, nil
}

// queryReport fills in the report. If the process has ended, it clears Client.
func (p *Peer) queryReport(ctx context.Context) {
	p.Report, p.Err = p.Client.Report(ctx)
	switch {
	case p.Err == nil:
		p.PID = p.Report.Process.PID
	case errors.Is(p.Err, fs.ErrNotExist):
		p.Client = nil // closed since the directory was read
	case debug.IsRefused(p.Err) && !processExists(p.PID):
		_ = os.Remove(strings.TrimPrefix(p.Client.addr, "unix:")) // another process may have removed it
		p.Client = nil
	}
}

// processExists reports whether a process exists.
func processExists(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	if runtime.GOOS == "windows" {
		return true // FindProcess has opened the process
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// Find returns the devices that match target: a process number, the name of a
// program or device, number and device as in 4711/softrnic0, or an endpoint such
// as unix:/path or 127.0.0.1:9479. Without an error the result is not empty.
func Find(ctx context.Context, target string) ([]Peer, error) {
	if strings.Contains(target, ":") {
		c, err := NewClient(target)
		if err != nil {
			return nil, err
		}
		p := Peer{Client: c}
		if p.Report, err = c.Report(ctx); err != nil {
			return nil, err
		}
		p.PID = p.Report.Process.PID
		return []Peer{p}, nil
	}
	all, err := Discover(ctx)
	if err != nil {
		return nil, err
	}
	match := slices.DeleteFunc(slices.Clone(all), func(p Peer) bool { return !p.matches(target) })
	if len(match) == 0 {
		return nil, notFoundError(target, all)
	}
	return match, nil
}

// matches reports whether target, other than an endpoint, matches the peer.
func (p *Peer) matches(target string) bool {
	process, device, both := strings.Cut(target, "/")
	pid, err := strconv.Atoi(process)
	switch {
	case both:
		return err == nil && pid == p.PID && device == p.Report.Device.Name
	case err == nil && pid == p.PID:
		return true
	}
	return target == p.Report.Device.Name || target == p.Report.Process.Command
}

// notFoundError returns the error for a target without a match, with advice.
func notFoundError(target string, all []Peer) error {
	process, _, _ := strings.Cut(target, "/")
	pid, err := strconv.Atoi(process)
	number := err == nil && pid > 0
	switch ours := slices.ContainsFunc(all, func(p Peer) bool { return p.PID == pid }); {
	case number && processExists(pid) && !ours:
		return fmt.Errorf("process %d has no debug endpoint of yours in %s; if it uses softrnic, start it anew with SOFTRNIC_DEBUG=auto, as the same user", pid, directoryList())
	case number && !ours:
		return fmt.Errorf("no process %d; %s", pid, listPeers(all))
	}
	return fmt.Errorf("%q: no such process or device; %s", target, listPeers(all))
}

// NoDevicesError returns the error for an empty result of Discover, with
// advice.
func NoDevicesError() error {
	return fmt.Errorf("no process of yours shows a device in %s; start programs with SOFTRNIC_DEBUG=auto in their environment, or by softrnic run", directoryList())
}

// directoryList lists the directories of endpoints.
func directoryList() string { return strings.Join(debug.Directories(), " or ") }

// listPeers lists the peers for a message.
func listPeers(peers []Peer) string {
	if len(peers) == 0 {
		return NoDevicesError().Error()
	}
	var names []string
	for _, p := range peers {
		names = append(names, fmt.Sprintf("%d/%s", p.PID, p.Report.Device.Name))
	}
	return "there are " + strings.Join(names, ", ")
}
