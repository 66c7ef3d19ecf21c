// Package rankaddr chooses the address at which ranks on several hosts open their
// adapters, where their launcher has not set SOFTRNIC_ADDR: mpiexec.hydra and srun do
// not.
//
//	err := rankaddr.Choose(ctx, manager) // before the adapter is opened, at all ranks
package rankaddr

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// EnvAddr is the variable that adapters take their address from.
const EnvAddr = "SOFTRNIC_ADDR"

// Ports is the port range that the ranks of a host share.
const Ports = "4791-5790"

// maxAddrs is the maximum number of addresses that a rank publishes.
const maxAddrs = 8

// A Manager is the part of a pmi.Manager that Choose needs.
type Manager interface {
	Rank() int                                           // from 0
	Size() int                                           // number of ranks
	Node(rank int) int                                   // index of the rank's host
	Put(key, value string) error                         // publishes a value
	Fence(ctx context.Context) error                     // waits for all ranks: what was put is visible then
	Get(ctx context.Context, key string) (string, error) // returns a value of another rank
}

// Choose sets SOFTRNIC_ADDR to the source address of the route to another host of the job,
// unless it is set, the job is on one host, or there is no such route. All ranks of a job must
// call it, before they open their adapters: it passes a fence if the job is on several hosts.
func Choose(ctx context.Context, m Manager) error {
	other := -1
	for rank := range m.Size() {
		if m.Node(rank) != m.Node(m.Rank()) {
			other = rank
			break
		}
	}
	if other < 0 {
		return nil
	}
	own, err := hostaddr.Own()
	if err != nil {
		return err
	}
	var words []string
	for _, ip := range own {
		if !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && len(words) < maxAddrs {
			words = append(words, ip.String())
		}
	}
	if err := m.Put(addrsKey(m.Rank()), strings.Join(words, ",")); err != nil {
		return err
	}
	if err := m.Fence(ctx); err != nil {
		return err
	}
	text, err := m.Get(ctx, addrsKey(other))
	if err != nil {
		return err
	}
	if ip := sourceToward(text); ip.IsValid() && os.Getenv(EnvAddr) == "" {
		return os.Setenv(EnvAddr, formatWithPorts(ip))
	}
	return nil
}

// sourceToward returns the source address of the route to the first address of a
// comma-separated list that is not local, preferring IPv4, or the zero Addr.
func sourceToward(list string) netip.Addr {
	for _, four := range []bool{true, false} {
		for word := range strings.SplitSeq(list, ",") {
			ip, err := netip.ParseAddr(word)
			if err != nil || ip.Is4() != four || hostaddr.IsOwn(ip) {
				continue
			}
			if from, err := hostaddr.Toward(ip); err == nil && !from.IsLoopback() {
				return from
			}
		}
	}
	return netip.Addr{}
}

func addrsKey(rank int) string { return "host-addresses-" + strconv.Itoa(rank) }

// formatWithPorts returns an address with the port range.
func formatWithPorts(ip netip.Addr) string {
	if ip.Is6() {
		return fmt.Sprintf("[%v]:%s", ip, Ports)
	}
	return fmt.Sprintf("%v:%s", ip, Ports)
}
