// What an application in Go does, with the code of docs/clients/go.md. Prints TAP.
// Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
// needs: golang-github-lib-pq-dev
// only with --all

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lib/pq"
)

var (
	ctx           = context.Background()
	tests, failed int
	owner, db     *sql.DB
	renewals      *sql.DB
)

func open(user string, most int) *sql.DB {
	pool, err := sql.Open("postgres", fmt.Sprintf("user=%s sslmode=disable", user))
	must(err)
	pool.SetMaxOpenConns(most)
	return pool
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal[T comparable](found, wanted T) {
	if found != wanted {
		panic(fmt.Errorf("found %v, wanted %v", found, wanted))
	}
}

func check(name string, body func()) {
	tests++
	defer func() {
		if raised := recover(); raised != nil {
			failed++
			fmt.Printf("not ok %d - %s\n# %v\n", tests, name, raised)
			return
		}
		fmt.Printf("ok %d - %s\n", tests, name)
	}()
	body()
}

func value[T any](query string, values ...any) (found T) {
	must(owner.QueryRow(query, values...).Scan(&found))
	return
}

func run(statement string, values ...any) {
	_, err := owner.Exec(statement, values...)
	must(err)
}

func sqlstate(err error) string {
	var server *pq.Error
	if !errors.As(err, &server) {
		panic(fmt.Errorf("no error of the server: %v", err))
	}
	return string(server.Code)
}

func eventually(condition func() bool) {
	for end := time.Now().Add(180 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			panic("it does not come true")
		}
	}
}

func newNote() (id, version int64) {
	must(owner.QueryRow("INSERT INTO note (body) VALUES ('old') RETURNING id, version").Scan(&id, &version))
	return
}

func main() {
	owner, db, renewals = open(os.Getenv("PGUSER"), 2), open("app", 10), open("app", 1)
	page, err := os.ReadFile(os.Getenv("ROOT") + "/docs/clients/go.md")
	must(err)
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllSubmatch(page, -1) {
		run(string(block[1]))
	}

	check("the second of two saves is stale, with the error of the server", func() {
		id, version := newNote()
		next, err := saveNote(ctx, db, id, version, map[string]any{"body": "first"})
		must(err)
		equal(next, version+1)
		_, err = saveNote(ctx, db, id, version, map[string]any{"body": "second"})
		var stale *StaleError
		equal(errors.As(err, &stale) && strings.Contains(stale.Server.Detail, `"expected"`), true)
		equal(sqlstate(err), "IL001")
		equal(value[string]("SELECT body FROM note WHERE id = $1", id), "first")
		_, err = saveNote(ctx, db, 0, version, map[string]any{"body": "none"})
		equal(sqlstate(err), "P0002")
		_, err = saveNote(ctx, db, id, next, nil)
		equal(sqlstate(err), "22023")
	})

	check("an update without the version is refused", func() {
		id, version := newNote()
		_, err := db.Exec("UPDATE note SET body = 'blind' WHERE id = $1", id)
		equal(sqlstate(err), "IL011")
		result, err := db.Exec("UPDATE note SET body = 'stale' WHERE id = $1 AND version = $2", id, version+1)
		must(err)
		rows, _ := result.RowsAffected()
		equal(rows, 0)
	})

	check("eight workers on one row lose nothing", func() {
		id, _ := newNote()
		var working sync.WaitGroup
		for worker := 0; worker < 8; worker++ {
			working.Add(1)
			go func() {
				defer working.Done()
				for done := 0; done < 5; {
					if err := addHit(ctx, db, id); err == nil {
						done++
					} else if !passes(err) {
						panic(err)
					}
				}
			}()
		}
		working.Wait()
		equal(value[int]("SELECT hits FROM note WHERE id = $1", id), 40)
	})

	check("a lease is renewed while its work runs, and released", func() {
		must(withLease(ctx, db, renewals, "report", "worker 1", 10*time.Second, func(working context.Context, token int64) error {
			first := value[time.Time]("SELECT expires_at FROM interlock.lease_of('report')")
			eventually(func() bool {
				return value[time.Time]("SELECT expires_at FROM interlock.lease_of('report')").After(first)
			})
			equal(errors.Is(withLease(ctx, db, renewals, "report", "worker 2", time.Second, nil), ErrHeld), true)
			must(working.Err())
			return report(working, db, token, "by the holder")
		}))
		equal(value[int]("SELECT count(*) FROM interlock.leases WHERE key = 'report'"), 0)
		equal(value[int]("SELECT count(*) FROM note WHERE body = 'by the holder'"), 1)
	})

	check("a lease that is lost cancels the work, and nothing is written", func() {
		err := withLease(ctx, db, renewals, "report", "worker 1", 2*time.Second, func(working context.Context, token int64) error {
			run("SELECT interlock.break_lease('report', 'test')")
			<-working.Done()
			return report(ctx, db, token, "late")
		})
		equal(sqlstate(err), "IL006")
		equal(value[int]("SELECT count(*) FROM note WHERE body = 'late'"), 0)
	})

	check("a heartbeat without an answer cancels the work before the lease ends", func() {
		must(withLease(ctx, db, renewals, "report", "worker 1", 4*time.Second, func(working context.Context, token int64) error {
			waiting, err := renewals.Conn(ctx) // its only connection
			must(err)
			defer waiting.Close()
			<-working.Done()
			return nil
		}))
	})

	check("a renewal that hangs cancels the work, and the call returns before the server answers", func() {
		var pid int
		must(renewals.QueryRow("SELECT pg_backend_pid()").Scan(&pid)) // of its only connection
		backend, err := os.FindProcess(pid)
		must(err)
		defer backend.Signal(syscall.SIGCONT)
		returned := make(chan error, 1)
		go func() {
			returned <- withLease(ctx, db, renewals, "paused", "worker 1", 4*time.Second, func(working context.Context, token int64) error {
				if err := backend.Signal(syscall.SIGSTOP); err != nil {
					return err
				}
				<-working.Done()
				return nil
			})
		}()
		eventually(func() bool { return len(returned) > 0 })
		must(<-returned)
	})

	check("a payment happens once, whoever asks again", func() {
		for _, wanted := range []string{`{"id": 1, "status": 201}`, `{"id": 1, "status": 201}`} {
			answer, err := pay(ctx, db, "anna", "key-1", map[string]any{"amount": 10})
			must(err)
			equal(answer, wanted)
		}
		answer, err := pay(ctx, db, "anna", "key-1", map[string]any{"amount": 11})
		must(err)
		equal(answer, `{"status": 422}`)
		answer, _ = pay(ctx, db, "anna", "", nil)
		equal(answer, `{"status": 400}`)
		_, err = pay(ctx, db, "anna", "key-2", map[string]any{"amount": "much"})
		equal(sqlstate(err), "22P02")
		equal(value[int]("SELECT count(*) FROM payment"), 1)
		equal(value[int]("SELECT count(*) FROM interlock.idempotency"), 1)
	})

	check("values of the table of calls", func() {
		var outcome string
		must(db.QueryRow("SELECT outcome FROM interlock.acquire_lease('duration', $1)", "5 min").Scan(&outcome))
		equal(outcome, "acquired")
		_, err := db.Exec("SELECT interlock.acquire_lease('nanoseconds', $1)", 30*time.Second)
		equal(sqlstate(err), "22023")
		must(transaction(ctx, db, func(tx *sql.Tx) error {
			_, err := tx.Exec("SELECT interlock.lock_keys($1, wait => $2)", pq.Array([]string{"a", "b"}), 2)
			return err
		}))
	})

	fmt.Printf("1..%d\n", tests)
	if failed > 0 {
		os.Exit(1)
	}
}
