// Package matrix collects the results of a run of the tests against Linux and
// writes them as the tables of docs/rxe-matrix.md.
//
//	var m matrix.Matrix
//	programs := m.Table("Programs", "The programs.", "program", "softrnic is")
//	programs.Count("clean", 1, 1, "ibv_rc_pingpong", "server") // the cell is the sum
//	statuses.Set("rxe to softrnic", "same", "WRITE, wrong rkey")
//	statuses.Set("softrnic to rxe", fmt.Sprintf("differs (%d)", statuses.Note("The reason.")), "WRITE, wrong rkey")
//	err := m.WriteFile("docs/rxe-matrix.md", head)
//
// The output depends only on the results, so two runs of the same code give the same text.
package matrix
