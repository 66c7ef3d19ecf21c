package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

func TestVersions(t *testing.T) {
	_, ranks := job(t, server.Options{Size: 2, ID: "j", Apps: []int{0, 1}, Nodes: []int{0, 1}})
	one, two := ranks[0], ranks[1]
	require.Equal(t, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1", one.request(t, "cmd=init pmi_version=3 pmi_subversion=0"))
	require.Equal(t, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0", one.request(t, "cmd=init pmi_version=1 pmi_subversion=2"))
	require.Equal(t, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0", two.request(t, init2))
	require.Equal(t, "cmd=appnum appnum=0", one.request(t, "cmd=get_appnum"))
	require.Equal(t, "cmd=fullinit-response pmi-version=2 pmi-subversion=0 rank=1 size=2 appnum=1 debugged=FALSE pmiverbose=FALSE rc=0",
		two.say2(t, "cmd=fullinit;pmirank=1;threaded=TRUE;"))
	require.Equal(t, "cmd=get_result rc=0 msg=success value=(vector,(0,2,1))", one.request(t, "cmd=get kvsname=j key=PMI_process_mapping"))

	// One rank uses PMI-1, the other PMI-2, in one fence.
	require.Equal(t, "cmd=put_result rc=0 msg=success", one.request(t, "cmd=put kvsname=j key=a value=1"))
	require.Equal(t, "cmd=kvs-put-response thrid=7 rc=0", two.say2(t, "cmd=kvs-put;thrid=7;key=b;value=2 and; "))
	require.Empty(t, one.request(t, "cmd=barrier_in"))
	require.Equal(t, "cmd=kvs-fence-response thrid=8 rc=0", two.say2(t, "cmd=kvs-fence;thrid=8;"))
	require.Equal(t, "cmd=barrier_out", one.nextReply(t))
	require.Equal(t, "cmd=kvs-get-response found=TRUE value=1 rc=0", two.say2(t, "cmd=kvs-get;key=a;"))
	require.Equal(t, "cmd=get_result rc=-1 found=FALSE msg=value_not_representable_in_PMI-1", one.request(t, "cmd=get kvsname=j key=b")) // it contains blanks
}

func TestMissingKeys(t *testing.T) {
	_, ranks := job(t, server.Options{Size: 1, ID: "j"})
	r := ranks[0]
	require.Equal(t, "cmd=get_result rc=-1 msg=key_x_not_found value=unknown", r.request(t, init1, "cmd=get kvsname=j key=x"))
	require.Equal(t, "cmd=put_result rc=-1 msg=not_in_this_kvs", r.request(t, "cmd=put kvsname=other key=x value=1"))
	require.Equal(t, "cmd=get_result rc=-1 msg=key_x_not_found value=unknown", r.request(t, "cmd=get kvsname=other key=x"))
	require.Equal(t, "cmd=put_result rc=-1 msg=not_in_this_kvs", r.request(t, "cmd=put kvsname=j key=PMI_process_mapping value=1"))
}

func TestAttributesOfANode(t *testing.T) {
	_, ranks := job(t, server.Options{Size: 3, ID: "j", Nodes: []int{0, 1, 1}})
	for _, r := range ranks {
		r.request(t, init2)
	}
	require.Empty(t, ranks[1].say2(t, "cmd=info-getnodeattr;thrid=5;key=shm;wait=TRUE;"))
	require.Equal(t, "cmd=info-putnodeattr-response rc=0", ranks[0].say2(t, "cmd=info-putnodeattr;key=shm;value=/a;"))
	require.Empty(t, ranks[1].nextReply(t)) // of another node
	require.Equal(t, "cmd=info-putnodeattr-response rc=0", ranks[2].say2(t, "cmd=info-putnodeattr;key=shm;value=/b;"))
	require.Equal(t, "cmd=info-getnodeattr-response thrid=5 found=TRUE value=/b rc=0", ranks[1].nextReply(t))
	require.Equal(t, "cmd=info-getnodeattr-response found=FALSE rc=0", ranks[1].say2(t, "cmd=info-getnodeattr;key=other;wait=FALSE;"))
}

func TestUnsupportedRequests(t *testing.T) {
	_, ranks := job(t, server.Options{Size: 2, ID: "j"})
	require.Equal(t, "cmd=publish_result info=fail rc=-1 msg=publishing_names_is_not_supported", ranks[0].request(t, init1, "cmd=publish_name service=a port=b"))
	spawn := "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=%d\nargcnt=0\nendcmd"
	require.Empty(t, ranks[0].request(t, fmt.Sprintf(spawn, 1)))
	require.Equal(t, "cmd=spawn_result rc=-1 msg=spawning_processes_is_not_supported", ranks[0].request(t, fmt.Sprintf(spawn, 2)))
	ranks[1].request(t, init2)
	require.Equal(t, "cmd=spawn-response rc=1 errmsg=spawn is not supported", ranks[1].say2(t, "cmd=spawn;ncmds=1;"))
}

// TestInvalidMessages checks that a rank that violates the protocol gets no more replies.
func TestInvalidMessages(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, lines := range [][]string{
		{"hello"}, {"cmd=get_maxes"}, {"cmd=init"}, {"cmd=init pmi_version=x"}, {init1, "cmd=nonsense"}, {init1, "cmd=get"}, {init1, "cmd=put key=a"},
		{init1, "cmd=put key=a value=" + long}, {init1, "cmd=put key=" + long + " value=a"}, {init1, "cmd=finalize", "cmd=get_maxes"},
		{init1, "cmd=barrier_in", "cmd=get_maxes"}, {init1, "cmd=init pmi_version=1"},
	} {
		_, ranks := job(t, server.Options{Size: 2, ID: "j"})
		err := ranks[1].Feed([]byte(strings.Join(lines, "\n") + "\n"))
		require.ErrorContains(t, err, "rank 1: ", lines)
		require.Less(t, len(err.Error()), 400)
		require.Equal(t, err, ranks[1].Feed([]byte(init1+"\n")))
	}
	for _, m := range []string{"cmd=nonsense;", "cmd=kvs-get;", "cmd=kvs-put;key=a;"} {
		_, ranks := job(t, server.Options{Size: 1, ID: "j"})
		ranks[0].request(t, init2)
		require.Error(t, ranks[0].Feed([]byte(counted(m))), m)
	}
}

func TestStuckEvents(t *testing.T) {
	var events []server.Event
	j, ranks := job(t, server.Options{Size: 4, ID: "j", Notify: func(e server.Event) { events = append(events, e) }})
	ranks[0].request(t, init1, "cmd=barrier_in")
	ranks[1].request(t, init1)
	ranks[2].request(t, init1, "cmd=finalize")
	require.Equal(t, []server.Event{{Kind: server.Stuck, Rank: -1, Waiting: []int{0}, Missing: []int{2}}}, events)
	require.Equal(t, []server.RankState{{0, server.AtFence, 0}, {1, server.Running, 0}, {2, server.Finalized, 0}, {3, server.NotJoined, 0}}, j.Ranks())
	require.Equal(t, "waits at the fence, runs, is finalized, has not joined", fmt.Sprintf("%v, %v, %v, %v", j.Ranks()[0].State, j.Ranks()[1].State, j.Ranks()[2].State, j.Ranks()[3].State))
	j.ProcessEnded(3)
	j.ProcessEnded(3)
	require.Equal(t, []int{2, 3}, events[1].Missing)
	require.Len(t, events, 2)
	j.ProcessEnded(0) // no rank waits
	j.ProcessEnded(2)
	require.Len(t, events, 2)
}

func TestOptions(t *testing.T) {
	for _, o := range []server.Options{
		{}, {Size: 1}, {Size: 1, ID: "a b"}, {Size: 2, ID: "j", Nodes: []int{0}}, {Size: 2, ID: "j", Nodes: []int{0, 2}}, {Size: 2, ID: "j", Nodes: []int{0, -1}},
		{Size: 2, ID: "j", Apps: []int{0}}, {Size: 1, ID: strings.Repeat("x", 300)},
	} {
		_, err := server.New(o)
		require.Error(t, err, o)
	}
	j, err := server.New(server.Options{Size: 1, ID: "j"})
	require.NoError(t, err)
	_, err = j.Attach(1, nil)
	require.ErrorContains(t, err, "rank 1 out of range")
	_, err = j.Attach(0, nil)
	require.NoError(t, err)
	_, err = j.Attach(0, nil)
	require.ErrorContains(t, err, "already")
}

// TestAgainstAModel has ranks send any requests in any order and compares with a model: a fence of
// a rank is complete when all others have entered as many fences.
func TestAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(rt, "ranks")
		_, ranks := job(t, server.Options{Size: n, ID: "j"})
		come, through, known := make([]int, n), make([]int, n), map[string]string{}
		for _, r := range ranks {
			r.request(t, init1)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				i := rapid.IntRange(0, n-1).Draw(rt, "rank")
				key, value := rapid.StringMatching(`[ab]`).Draw(rt, "key"), rapid.StringMatching(`[a-z0-9]{1,5}`).Draw(rt, "value")
				if come[i] > through[i] {
					rt.Skip()
				}
				require.Equal(rt, "cmd=put_result rc=0 msg=success", ranks[i].request(t, "cmd=put kvsname=j key="+key+" value="+value))
				known[key] = value
			},
			"get": func(rt *rapid.T) {
				i := rapid.IntRange(0, n-1).Draw(rt, "rank")
				if come[i] > through[i] {
					rt.Skip()
				}
				want := "cmd=get_result rc=-1 msg=key_a_not_found value=unknown"
				if value, ok := known["a"]; ok {
					want = "cmd=get_result rc=0 msg=success value=" + value
				}
				require.Equal(rt, want, ranks[i].request(t, "cmd=get kvsname=j key=a"))
			},
			"fence": func(rt *rapid.T) {
				i := rapid.IntRange(0, n-1).Draw(rt, "rank")
				if come[i] > through[i] {
					rt.Skip()
				}
				come[i]++
				require.NoError(rt, ranks[i].Feed([]byte("cmd=barrier_in\n")))
			},
			"": func(rt *rapid.T) {
				all := come[0]
				for _, c := range come {
					all = min(all, c)
				}
				for i, r := range ranks {
					for through[i] < min(come[i], all) {
						require.Equal(rt, "cmd=barrier_out", r.nextReply(t))
						through[i]++
					}
					require.Empty(rt, r.nextReply(t))
				}
			},
		})
	})
}

func FuzzFeed(f *testing.F) {
	f.Add([]byte(init1+"\ncmd=get_maxes\ncmd=put kvsname=j key=a value=b\ncmd=barrier_in\n"), []byte(init2+"\n"+counted("cmd=fullinit;pmirank=1;")+counted("cmd=kvs-fence;")))
	f.Add([]byte("mcmd=spawn\nendcmd\n"), []byte(init2+"\n"+counted("cmd=info-getnodeattr;key=a;wait=TRUE;")))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		j, ranks := job(t, server.Options{Size: 2, ID: "j"})
		for i := range max(len(a), len(b)) {
			if i < len(a) {
				_ = ranks[0].Feed(a[i : i+1])
			}
			if i < len(b) {
				_ = ranks[1].Feed(b[i : i+1])
			}
		}
		j.ProcessEnded(0)
		for _, r := range ranks {
			for r.answers.Len() > 0 {
				require.NotEmpty(t, r.nextReply(t))
			}
		}
	})
}
