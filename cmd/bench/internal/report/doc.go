// Package report formats the results of experiments for readers: as text
// tables, as SVG charts, and as one HTML page without external resources.
//
//	fmt.Print(report.Text(result))               // tables and verdict
//	err := report.Save(dir, env.Read(), result)  // NAME.jsonl, NAME.csv, NAME.txt, NAME.svg, NAME.json
//	err = report.Page(file, env.Read(), results) // everything
//	results, machine, err := report.Load(dir, &bench.Default)
//	fmt.Println(report.Screen{Title: title, Results: results}.Summary()) // one screen
//
// Rows are grouped by their units. There is a table for each pair of an x and a y unit, and a
// chart for each baseline with the series that are compared with it.
package report
