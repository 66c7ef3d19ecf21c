package server_test

import (
	"fmt"
	"net"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

// A job of one rank, which sends PMI-1 messages by hand.
func Example() {
	job, err := server.New(server.Options{Size: 1, ID: "job-4711", Notify: func(e server.Event) {
		fmt.Println("rank", e.Rank, "aborts the job with code", e.Code)
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rank, manager := net.Pipe()
	served := make(chan error)
	go func() { served <- job.Serve(0, manager) }()

	answer := make([]byte, 100)
	for _, line := range []string{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname"} {
		fmt.Fprintln(rank, line)
		n, _ := rank.Read(answer)
		fmt.Print(string(answer[:n]))
	}
	fmt.Fprintln(rank, "cmd=abort exitcode=7")
	rank.Close()
	fmt.Println(<-served)
	// Output:
	// cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
	// cmd=my_kvsname kvsname=job-4711
	// rank 0 aborts the job with code 7
	// <nil>
}
