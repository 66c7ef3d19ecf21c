package mpirun

import (
	"os"
	"os/exec"
	"slices"
	"strings"
)

// sshCommand is the command that reaches other hosts. It has no terminal, no X11 and asks no
// questions. It gives up after 10 s without a connection and after 15 s (3 x 5 s) without a reply.
var sshCommand = []string{"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"}

// agentCommand returns the command that runs an agent on a host.
func (o *Options) agentCommand(host string) *exec.Cmd {
	agent := o.Agent
	if len(o.Remote) > 0 {
		agent = o.Remote
	}
	words, own := []string(nil), ownVariables
	switch {
	case o.isLocal(host):
		words, own = o.Agent, own[:1]
	case len(o.Launch) > 0:
		words = append(slices.Clone(o.Launch), host, shellCommand(agent))
	case len(o.Hosts) == 0 && o.Allocation != nil && o.Allocation.command != nil:
		words = o.Allocation.command(host, agent)
	default:
		words = append(slices.Clone(sshCommand), host, shellCommand(agent))
	}
	cmd := exec.Command(words[0], words[1:]...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(own, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// ownVariables are the variables of the launcher's environment that must not reach an agent. The
// first describes the ssh connection of the launcher's user; an agent reads its own. Commands such
// as srun copy the environment to other hosts, where SOFTRNIC_ADDR is wrong; the Slurm variables
// are options of srun for ranks and would apply to the one agent of a host.
var ownVariables = []string{"SSH_CONNECTION", "SOFTRNIC_ADDR", "SLURM_NTASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE"}

// shellCommand returns a command line for a POSIX shell.
func shellCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(word)
	}
	return "exec " + strings.Join(quoted, " ")
}

// shellQuote quotes a word for a POSIX shell.
func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// exportedEnviron returns the variables of the launcher's environment that ranks on other hosts
// inherit: those of softrnic except the address, which differs by host, and those of the Go
// runtime.
func exportedEnviron(environ []string) (list []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "SOFTRNIC_ADDR", "SOFTRNIC_PMI_SECRET":
		case "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK":
			list = append(list, v)
		default:
			if strings.HasPrefix(name, "SOFTRNIC_") {
				list = append(list, v)
			}
		}
	}
	return list
}
