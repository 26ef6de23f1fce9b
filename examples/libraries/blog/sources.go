package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"sync"

	_ "modernc.org/sqlite"

	"github.com/braidgo/braid/fetch"
)

// A Post describes a blog post without its content.
type Post struct {
	ID    int
	Date  string
	Topic string
}

// A blog holds the sources for the page, one for each table.
type blog struct {
	ids     *fetch.Source[struct{}, []int]
	info    *fetch.Source[int, Post]
	content *fetch.Source[int, string]
	views   *fetch.Source[int, int]
}

func newBlog(db *database, o fetch.SourceOptions) *blog {
	return &blog{
		ids: fetch.New("postIds", func(ctx context.Context, b *fetch.Batch[struct{}, []int]) error {
			var ids []int
			err := db.each(ctx, "select id from posts order by id", nil, func(rows *sql.Rows) error {
				var id int
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			})
			if err == nil {
				b.Set(struct{}{}, ids)
			}
			return err
		}, o),
		info: byID("postInfo", db, "select post, date, topic from info where post in ", o, func(rows *sql.Rows) (id int, p Post, err error) {
			err = rows.Scan(&p.ID, &p.Date, &p.Topic)
			return p.ID, p, err
		}),
		content: byID("postContent", db, "select post, text from content where post in ", o, func(rows *sql.Rows) (id int, text string, err error) {
			err = rows.Scan(&id, &text)
			return id, text, err
		}),
		views: byID("postViews", db, "select post, number from views where post in ", o, func(rows *sql.Rows) (id, number int, err error) {
			err = rows.Scan(&id, &number)
			return id, number, err
		}),
	}
}

// byID returns a source that loads rows by their ids. Each batch executes one statement.
func byID[V any](name string, db *database, query string, o fetch.SourceOptions, scan func(*sql.Rows) (int, V, error)) *fetch.Source[int, V] {
	return fetch.New(name, func(ctx context.Context, b *fetch.Batch[int, V]) error {
		args := make([]any, len(b.Keys()))
		for i, k := range b.Keys() {
			args[i] = k
		}
		list := "(?" + strings.Repeat(",?", len(args)-1) + ")"
		return db.each(ctx, query+list, args, func(rows *sql.Rows) error {
			k, v, err := scan(rows)
			if err == nil {
				b.Set(k, v)
			}
			return err
		})
	}, o)
}

// A database is an sql.DB that prints each statement.
type database struct {
	*sql.DB
	mu  sync.Mutex
	out io.Writer
}

func (db *database) each(ctx context.Context, query string, args []any, f func(*sql.Rows) error) error {
	db.mu.Lock()
	fmt.Fprintln(db.out, query)
	db.mu.Unlock()
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// openDatabase creates an in-memory database with four tables and twelve posts.
func openDatabase(ctx context.Context, out io.Writer) (*database, error) {
	db, err := sql.Open("sqlite", "file:blog?mode=memory&cache=shared")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `
		drop table if exists posts;   create table posts (id integer primary key);
		drop table if exists info;    create table info (post integer primary key, date text, topic text);
		drop table if exists content; create table content (post integer primary key, text text);
		drop table if exists views;   create table views (post integer primary key, number integer);`)
	topics := []string{"Go", "Haskell", "OCaml"}
	for id := 1; id <= 12 && err == nil; id++ {
		_, err = db.ExecContext(ctx, `
			insert into posts values (?1);
			insert into info values (?1, ?2, ?3);
			insert into content values (?1, ?4);
			insert into views values (?1, ?5);`,
			id, fmt.Sprintf("2014-%02d-01", id*7%12+1), topics[id%3], fmt.Sprint("What I think of topic ", id), 100*(id*5%13))
	}
	if err != nil {
		return nil, err
	}
	return &database{DB: db, out: out}, nil
}
