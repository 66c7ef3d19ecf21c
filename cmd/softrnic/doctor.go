package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A level is the severity of a checkResult.
type level string

const (
	levelOK   level = "OK"
	levelWarn level = "WARN" // works, but slower or not for everyone
	levelFail level = "FAIL" // does not work
)

// A checkResult is the outcome of one check.
type checkResult struct {
	Level  level    `json:"level"`
	Check  string   `json:"check"`
	Detail string   `json:"detail"`
	Fix    []string `json:"fix,omitempty"` // commands, or advice when there is no command
}

// notTested names the conditions that doctor cannot check.
const notTested = "not tested: firewalls and the path to other hosts; UDP port 4791 must be open in both directions"

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the properties of this machine that the adapter needs, and print improvements",
		Long: "Checks socket buffers, offloads, port 4791, addresses and their MTU, and processors,\n" +
			"and exchanges data between two devices over real sockets. It changes nothing, and\n" +
			"prints the commands that improve a result. The exit status is 1 if a check fails.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := a.deviceOptions()
			if err != nil {
				return err
			}
			return a.reportChecks(evaluate(a.inspectMachine(c.Context(), options)))
		},
	}
}

// reportChecks writes the results. The error counts failed checks.
func (a *app) reportChecks(findings []checkResult) error {
	failed := 0
	for _, f := range findings {
		if f.Level == levelFail {
			failed++
		}
	}
	if a.json {
		err := a.writeJSON(struct {
			OK        bool          `json:"ok"`
			Checks    []checkResult `json:"checks"`
			NotTested string        `json:"not_tested"`
		}{failed == 0, findings, notTested})
		if err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			f.writeTo(a.stdout)
		}
		fmt.Fprintf(a.stdout, "\n%s\n", notTested)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

func (f checkResult) writeTo(w io.Writer) {
	fmt.Fprintf(w, "%-4s  %-16s  %s\n", f.Level, f.Check, f.Detail)
	for _, fix := range f.Fix {
		fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", 24), fix)
	}
}

// evaluate turns facts into check results.
func evaluate(s machineFacts) []checkResult {
	list := []checkResult{s.checkSystem(), s.checkProcessors()}
	if s.probe.Err != nil {
		list = append(list, checkResult{levelFail, "sockets", s.probe.Err.Error(), nil})
	} else {
		list = append(list, s.checkBuffer("receive buffer", "rmem_max", s.probe.RecvBuffer, s.probe.RecvBufferMax, link.DefaultRecvBuffer),
			s.checkBuffer("send buffer", "wmem_max", s.probe.SendBuffer, s.probe.SendBufferMax, link.DefaultSendBuffer))
		list = append(list, s.checkOffloads()...)
	}
	list = append(list, s.checkPort())
	list = append(list, s.checkAddresses()...)
	return append(list, s.checkDebugEndpoint(), s.checkSelfTest())
}

func (s machineFacts) checkSystem() checkResult {
	return checkResult{levelOK, "system", fmt.Sprintf("%s/%s, %s, link %s", s.goos, s.goarch, s.goVersion, s.probe.Name), nil}
}

func (s machineFacts) checkProcessors() checkResult {
	f := checkResult{levelOK, "processors", fmt.Sprintf("%d, GOMAXPROCS %d", s.cpus, s.maxProcs), nil}
	switch {
	case s.maxProcs == 1 && s.cpus > 1:
		f.Level = levelWarn
		f.Detail += ": the adapter's service goroutine and the program share one processor"
		f.Fix = []string{"unset GOMAXPROCS, or raise the CPU limit of the container"}
	case s.maxProcs == 1:
		f.Level = levelWarn
		f.Detail += ": every wait costs a thread switch"
	case s.maxProcs > max(2, s.cpus): // a device makes two of one
		f.Level = levelWarn
		f.Detail += ": spinning threads compete for processors"
		f.Fix = []string{"unset GOMAXPROCS"}
	}
	return f
}

// checkBuffer checks the size of a socket buffer of which want bytes were requested.
func (s machineFacts) checkBuffer(check, sysctl string, got, limit, want int) checkResult {
	f := checkResult{Level: levelOK, Check: check}
	switch {
	case got == 0:
		f.Detail = "the system does not report its size"
	case got >= want:
		f.Detail = formatBytes(got)
	case s.goos == "linux":
		f.Level = levelWarn
		f.Detail = fmt.Sprintf("%s instead of %s (net.core.%s is %d): bursts lose packets, which are retransmitted", formatBytes(got), formatBytes(want), sysctl, limit)
		f.Fix = []string{
			fmt.Sprintf("sudo sysctl -w net.core.%s=%d", sysctl, want),
			fmt.Sprintf("echo net.core.%s=%d | sudo tee -a /etc/sysctl.d/90-softrnic.conf", sysctl, want),
		}
	default:
		f.Level = levelWarn
		f.Detail = fmt.Sprintf("%s instead of %s: bursts lose packets, which are retransmitted", formatBytes(got), formatBytes(want))
		if s.goos == "darwin" {
			f.Fix = []string{fmt.Sprintf("sudo sysctl -w kern.ipc.maxsockbuf=%d", 2*want)}
		}
	}
	return f
}

// formatBytes formats a number of bytes in KiB or MiB.
func formatBytes(bytes int) string {
	if bytes >= 1<<20 && bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// checkOffloads checks the features by which one system call moves many packets.
func (s machineFacts) checkOffloads() []checkResult {
	var list []checkResult
	for _, o := range []struct {
		check, name, since string
		works              bool
	}{
		{"GSO", "UDP_SEGMENT", "4.18", s.probe.GSO},
		{"GRO", "UDP_GRO", "5.0", s.probe.GRO},
		{"mmsg", "sendmmsg", "3.0", s.probe.MMsg},
	} {
		f := checkResult{levelOK, o.check, o.name + " works", nil}
		switch {
		case o.works:
		case s.goos == "linux":
			f.Level = levelWarn
			f.Detail = fmt.Sprintf("%s is not available: every packet costs at least one system call", o.name)
			f.Fix = []string{fmt.Sprintf("use Linux %s or later; gVisor and some containers lack it as well", o.since)}
		default:
			f.Detail = o.name + " exists on Linux only; not needed on " + s.goos
		}
		list = append(list, f)
	}
	if s.linkEnv != "" {
		list = append(list, checkResult{levelWarn, "environment", fmt.Sprintf("%s=%s disables accelerations of devices", link.EnvVar, s.linkEnv),
			[]string{"unset " + link.EnvVar}})
	}
	return list
}

// checkPort checks UDP port 4791, which rdma_rxe occupies on all addresses.
func (s machineFacts) checkPort() checkResult {
	f := checkResult{levelOK, "port 4791", "free", nil}
	if len(s.rdmaDevices) > 0 {
		f.Detail += "; the kernel has RDMA devices of its own: " + strings.Join(s.rdmaDevices, ", ")
	}
	if s.probe.RoCEPort == nil {
		return f
	}
	f.Level = levelWarn
	f.Fix = []string{"use another port, which peers need as well: softrnic --addr 127.0.0.1:4792, or SOFTRNIC_ADDR=127.0.0.1:4792"}
	var rxe []string
	for _, name := range s.rdmaDevices {
		if strings.HasPrefix(name, "rxe") {
			rxe = append(rxe, name)
		}
	}
	switch {
	case len(rxe) > 0:
		f.Detail = fmt.Sprintf("in use by the kernel's rdma_rxe (%s) on every address", strings.Join(rxe, ", "))
		for _, name := range rxe {
			f.Fix = append(f.Fix, "or remove it: sudo rdma link delete "+name)
		}
	case s.rxeLoaded:
		f.Detail = "in use, possibly by the kernel's rdma_rxe, which is loaded; " + s.probe.RoCEPort.Error()
		f.Fix = append(f.Fix, "or unload it: sudo modprobe -r rdma_rxe")
	default:
		f.Detail = s.probe.RoCEPort.Error()
		f.Fix = append(f.Fix, "show its owner: sudo ss -ulpn sport = :4791")
	}
	return f
}

// checkAddresses checks each possible address of a device.
func (s machineFacts) checkAddresses() []checkResult {
	var list []checkResult
	others := 0
	for _, a := range s.addresses {
		if !a.ip.IsLoopback() {
			others++
		}
		list = append(list, a.checkMTU())
	}
	if len(list) == 0 {
		list = append(list, checkResult{levelFail, "addresses", "no interface that is up has an address", []string{"sudo ip link set dev lo up"}})
	} else if others == 0 {
		list = append(list, checkResult{levelWarn, "addresses", "only loopback: peers on this machine only", nil})
	}
	return list
}

func (a interfaceAddr) checkMTU() checkResult {
	mtu := wire.PathMTU(a.mtu, !a.ip.Is4())
	f := checkResult{levelOK, "address", fmt.Sprintf("%v on %s, GID %s, interface MTU %d, RoCE MTU %d", a.ip, a.name, formatGID(verbs.GIDFromAddr(a.ip)), a.mtu, mtu), nil}
	if mtu == 0 {
		f.Level = levelWarn
		f.Detail = fmt.Sprintf("%v on %s: interface MTU %d is too small for any RoCE packet", a.ip, a.name, a.mtu)
	}
	if mtu < wire.MaxMTU {
		f.Fix = []string{fmt.Sprintf("for RoCE MTU %d, if all hosts and switches on the path support it: sudo ip link set dev %s mtu %d", wire.MaxMTU, a.name, fullMTU())}
	}
	return f
}

// fullMTU returns the least interface MTU that carries packets of the largest RoCE MTU over IPv4
// and IPv6.
func fullMTU() int {
	mtu := wire.MaxMTU
	for wire.PathMTU(mtu, true) < wire.MaxMTU || wire.PathMTU(mtu, false) < wire.MaxMTU {
		mtu++
	}
	return mtu
}

func (s machineFacts) checkDebugEndpoint() checkResult {
	if s.endpoint != nil {
		return checkResult{levelWarn, "debug endpoint", s.endpoint.Error(), nil}
	}
	return checkResult{levelOK, "debug endpoint", "`softrnic stat` finds processes that run with SOFTRNIC_DEBUG=auto", nil}
}

func (s machineFacts) checkSelfTest() checkResult {
	if s.test.err != nil {
		return checkResult{levelFail, "self test", s.test.err.Error(), nil}
	}
	if s.test.retransmitted*100 > s.test.packets || s.test.took > selfTestSlow {
		return checkResult{levelWarn, "self test", s.test.String() + ": slow, or retransmissions without a network",
			[]string{"check the load of the machine (uptime) and the socket buffers (above)"}}
	}
	return checkResult{levelOK, "self test", s.test.String(), nil}
}
