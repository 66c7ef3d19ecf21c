package server_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

// TestRepliesOfHydra sends the requests of recorded sessions and checks that the replies are those
// of hydra, byte for byte.
func TestRepliesOfHydra(t *testing.T) {
	for name, files := range map[string][]string{
		"by hand":             {"pmi1-rank0.txt", "pmi1-rank1.txt", "pmi1-rank2.txt"},
		"MPICH":               {"pmi1-mpich-rank0.txt", "pmi1-mpich-rank1.txt"},
		"libpmi2 of Slurm":    {"pmi2-rank0.txt", "pmi2-rank1.txt"},
		"MPICH, after a port": {"pmi1-port-mpich-rank0.txt", "pmi1-port-mpich-rank1.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, answered := make([][]string, len(files)), make([][]string, len(files))
			for i, file := range files {
				asked[i], answered[i] = transcript(t, file)
				if asked[i][0] == "cmd=initack pmiid="+string(rune('0'+i))+"\n" { // TestWelcome
					asked[i], answered[i] = asked[i][1:], answered[i][4:]
				}
			}
			id := regexp.MustCompile(`kvs_\w+`).FindString(strings.Join(answered[0], ""))
			_, ranks := job(t, server.Options{Size: len(files), ID: id})
			answers := 0
			for moved := true; moved; {
				moved = false
				for i, r := range ranks {
					// Asked, answered, and asked again only then.
					for len(asked[i]) > 0 && len(asked[i]) >= len(answered[i]) {
						if len(asked[i]) == len(answered[i]) {
							require.NoError(t, r.Feed([]byte(asked[i][0])))
							asked[i] = asked[i][1:]
							moved = true
						}
						break
					}
					if r.answers.Len() == 0 {
						continue
					}
					got, want := r.answers.String(), answered[i][0]
					r.answers.Reset()
					answered[i] = answered[i][1:]
					moved, answers = true, answers+1
					switch want {
					case "cmd=universe_size size=-1\n": // hydra has no limit; here the limit is the size of the job
						require.Equal(t, "cmd=universe_size size=3\n", got)
					default:
						if got != want && regexp.MustCompile(`value=2;`).MatchString(got) {
							// hydra 4.0 does not support universeSize in PMI-2.
							require.Equal(t, counted("cmd=info-getjobattr-response;found=FALSE;rc=0;"), want)
							continue
						}
						require.Equal(t, want, got)
					}
				}
			}
			for i := range files {
				require.Empty(t, asked[i])
				require.Empty(t, answered[i])
			}
			require.Greater(t, answers, 20)
		})
	}
}

func TestAbortsOfHydra(t *testing.T) {
	for file, want := range map[string]server.Event{
		"pmi1-abort-rank1.txt": {Kind: server.Abort, Rank: 1, Code: 7},
		"pmi2-abort-rank1.txt": {Kind: server.Abort, Rank: 1, Code: 1, Why: "the reason why"},
	} {
		var events []server.Event
		asked, _ := transcript(t, file)
		id := regexp.MustCompile(`kvs_\w+`).FindString(asked[len(asked)-2])
		if id == "" {
			id = "kvs"
		}
		_, ranks := job(t, server.Options{Size: 3, ID: id, Notify: func(e server.Event) { events = append(events, e) }})
		for _, message := range asked {
			require.NoError(t, ranks[1].Feed([]byte(message)))
			if message == "cmd=barrier_in\n" || message == "14    cmd=kvs-fence;" {
				for _, other := range []int{0, 2} {
					ranks[other].request(t, init1, "cmd=barrier_in")
				}
			}
		}
		require.Equal(t, []server.Event{want}, events)
	}
}
