package mpirun

import (
	"os"
	"os/exec"
	"slices"
	"strings"
)

// sshCommand is the command that reaches other hosts: without a terminal, X11 or questions, which
// nobody would see. A host that does not answer in 10 s is not there, and one that says
// nothing for 15 s is lost.
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

// ownVariables are those of the launcher's environment that must not reach an agent.
// The first tells an agent how its own ssh came; the launcher's was the user's.
// Commands such as srun carry the whole environment to other hosts, where
// SOFTRNIC_ADDR is wrong, and what srun takes from the others is meant for ranks, not
// for the one agent of a host.
var ownVariables = []string{"SSH_CONNECTION", "SOFTRNIC_ADDR", "SLURM_NTASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE"}

// shellCommand writes a command for a POSIX shell.
func shellCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(word)
	}
	return "exec " + strings.Join(quoted, " ")
}

// shellQuote writes a word for a POSIX shell.
func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// exportedEnviron says which variables of the launcher's environment ranks on other hosts
// get: those of softrnic, but for the address, which is another on each host, and
// those of Go's runtime.
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
