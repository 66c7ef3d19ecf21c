package mpirun

import (
	"os/exec"
	"strings"
)

// ssh is what reaches other hosts: without a terminal, X11 or questions, which
// nobody would see. A host that says nothing for 15 s is lost.
var ssh = []string{"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"}

// agentCommand is the command that runs an agent on a host.
func (o *Options) agentCommand(host string) *exec.Cmd {
	if o.here(host) {
		return exec.Command(o.Agent[0], o.Agent[1:]...)
	}
	launch := o.Launch
	if len(launch) == 0 {
		launch = ssh
	}
	agent := o.Agent
	if len(o.Remote) > 0 {
		agent = o.Remote
	}
	words := make([]string, len(agent))
	for i, word := range agent {
		words[i] = quote(word)
	}
	args := append(launch[1:len(launch):len(launch)], host, "exec "+strings.Join(words, " "))
	return exec.Command(launch[0], args...)
}

// quote writes a word for a POSIX shell.
func quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// exported says which variables of the launcher's environment ranks on other hosts
// get: those of softrnic, but for the address, which is another on each host, and
// those of Go's runtime.
func exported(environ []string) (list []string) {
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
