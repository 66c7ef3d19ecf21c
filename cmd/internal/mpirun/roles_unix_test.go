//go:build unix

package mpirun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/mpi/pmi"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// runRole runs a role in a process that a test has started, and returns the exit status.
func runRole(role string, args []string) int {
	rank, _ := strconv.Atoi(os.Getenv("PMI_RANK"))
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	arg := func(i int) int {
		n, _ := strconv.Atoi(args[i])
		return n
	}
	join := func() pmi.Manager {
		m, err := pmi.Open(ctx)
		if err != nil {
			fmt.Println("open:", err)
			os.Exit(99)
		}
		return m
	}
	switch role {
	case "say": // prints its arguments, with variables of the environment
		fmt.Println("rank", rank, os.ExpandEnv(strings.Join(args, " ")))
	case "where":
		dir, _ := os.Getwd()
		fmt.Println(dir)
	case "question": // prints a prompt without an end of line, and the answer
		fmt.Print("how many? ")
		fmt.Fprint(os.Stderr, strings.Join(args, " "))
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Print("so many: ", answer)
	case "cat":
		n, err := io.Copy(os.Stdout, os.Stdin)
		if rank != 0 && n > 0 || err != nil {
			return 9
		}
	case "talk": // writes lines in pieces
		for i := range arg(0) {
			line := fmt.Sprintf("%d:%d:%s\n", rank, i, strings.Repeat(string(rune('a'+rank)), rand.IntN(300)))
			for len(line) > 0 {
				n := 1 + rand.IntN(len(line))
				os.Stdout.WriteString(line[:n])
				line = line[n:]
			}
		}
	case "exchange":
		m := join()
		err := connectRanks(ctx, m)
		if err == nil {
			err = m.Finalize()
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Printf("rank %d of %d on node %d is done\n", m.Rank(), m.Size(), m.Node(m.Rank()))
	case "exit": // rank arg(0) with status arg(1), in the middle of the job
		m := join()
		if rank == arg(0) {
			return arg(1)
		}
		m.Fence(ctx)
		time.Sleep(hang)
	case "signal": // rank arg(0) by signal arg(1)
		if rank == arg(0) {
			syscall.Kill(os.Getpid(), syscall.Signal(arg(1)))
		}
		time.Sleep(hang)
	case "abort":
		m := join()
		if rank == arg(0) {
			m.Abort(arg(1), strings.Join(args[2:], " "))
			return arg(1)
		}
		m.Fence(ctx)
		time.Sleep(hang)
	case "silent": // all ranks but one enter the fence
		m := join()
		if rank != arg(0) {
			m.Fence(ctx)
		}
		time.Sleep(hang)
	case "leave": // one rank exits with status 0, and the others wait for it
		if rank == arg(0) {
			return 0
		}
		join().Fence(ctx)
		time.Sleep(hang)
	case "nonsense": // written to the connection to the manager
		f := os.NewFile(3, "PMI_FD")
		f.WriteString("hello, manager\n")
		_, err := f.Read(make([]byte, 1))
		fmt.Println(err)
		return 5
	case "strangers": // at the manager's port
		for _, says := range []string{"GET / HTTP/1.1\r\n\r\n", "cmd=initack pmiid=0\n", strings.Repeat("x", 1000)} {
			c, err := net.Dial("tcp", os.Getenv("PMI_PORT"))
			if err != nil {
				return 1
			}
			io.WriteString(c, says)
			io.Copy(io.Discard, c) // until the manager closes the connection
			c.Close()
		}
		return runRole("exchange", nil)
	case "family": // processes that ignore SIGTERM. Then all wait, or rank 0 fails
		child := exec.Command(os.Args[0], "rank", "stubborn", args[0])
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
		return runRole("stubborn", args)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		if err := holdWitness(args[0], strconv.Itoa(os.Getppid())); err != nil {
			fmt.Println(err)
			return 1
		}
		if len(args) > 1 && rank == 0 {
			f, err := os.Open(args[1]) // blocks until the test opens it as well
			if err != nil {
				return 1
			}
			f.Close()
			return 3
		}
		fmt.Println("ready")
		time.Sleep(hang)
	case "killagent":
		if err := holdWitness(args[0], "rank"); err != nil {
			return 1
		}
		m := join()
		if m.Fence(ctx); rank == 1 {
			syscall.Kill(os.Getppid(), syscall.SIGKILL)
		}
		time.Sleep(hang)
	case "wait": // in a program of package mpi, for the next rank, without end
		if err := waitForNext(); err != nil {
			fmt.Printf("%v\n", err)
		}
		time.Sleep(hang)
	case "launcher": // a complete launcher, which a test kills
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, os.Interrupt)
		err := Run(ctx, Options{
			Programs: []Program{program(2, "family", args[0])},
			Signals:  signals,
			Agent:    []string{os.Args[0], "agent"},
			Stdout:   os.Stdout, Stderr: os.Stderr,
			Grace: 50 * time.Millisecond,
		})
		fmt.Println(err)
	}
	return 0
}

// connectRanks connects all ranks: each listens, publishes its address, and accepts a connection
// from every other rank. On a host with an address in 198.18.0.0/15 it uses that address.
func connectRanks(ctx context.Context, m pmi.Manager) error {
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && netip.MustParsePrefix("198.18.0.0/15").Contains(p.Addr()) {
			ip = p.Addr()
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return err
	}
	defer l.Close()
	if err := m.Put(fmt.Sprintf("address-%d", m.Rank()), l.Addr().String()); err != nil {
		return err
	}
	if err := m.Fence(ctx); err != nil {
		return err
	}
	calls := make(chan error, 1)
	go func() {
		for range m.Size() {
			c, err := l.Accept()
			if err != nil {
				calls <- err
				return
			}
			fmt.Fprintln(c, "I am", m.Rank())
			c.Close()
		}
		calls <- nil
	}()
	for rank := range m.Size() {
		at, err := m.Get(ctx, fmt.Sprintf("address-%d", rank))
		if err != nil {
			return err
		}
		c, err := net.Dial("tcp", at)
		if err != nil {
			return err
		}
		said, err := bufio.NewReader(c).ReadString('\n')
		c.Close()
		if err != nil || said != fmt.Sprintln("I am", rank) {
			return fmt.Errorf("%s says %q: %v", at, said, err)
		}
		other := strings.Split(at, ":")[0]
		if same := other == ip.String(); ip.IsLoopback() == false && same != (m.Node(rank) == m.Node(m.Rank())) {
			return errors.New("ranks of different nodes have one address, or the other way around")
		}
	}
	return errors.Join(<-calls, m.Fence(ctx))
}
