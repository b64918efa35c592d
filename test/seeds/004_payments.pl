# Article 004, its part about requests that come twice: checkAndAcquire, complete and fail over a table of keys, with key, scope,
# PENDING and a hash of the request. By hand first, as the article has it; then by claims. Forms of article 001 that are sent twice.

use strict;
use warnings;
use Story;
use Test::More;

my $points = q{
    DELETE FROM interlock.idempotency;
    CREATE TABLE points (user_id int, amount int);
    CREATE TABLE idempotency_record (key text, scope text, status text NOT NULL DEFAULT 'PENDING', request_hash text, result_id text,
        created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (key, scope));
    SELECT interlock.define_idempotency_scope('loyalty', ttl => '7 days', stale_after => '5 min');
};

# checkAndAcquire(key, scope, hash): the article's INSERT, and what it reads when there is a record already.
sub by_hand { my ($hash) = @_; return qq{INSERT INTO idempotency_record (key, scope, request_hash) VALUES ('redeem:123:500', 'loyalty', '$hash') ON CONFLICT DO NOTHING}; }
my $record = q{SELECT status, request_hash, result_id FROM idempotency_record WHERE key = 'redeem:123:500' AND scope = 'loyalty'};
sub claims
{
    my ($hash, $columns, $options) = @_;
    $columns //= 'outcome';
    return qq{SELECT $columns FROM interlock.idempotency_claim(key => 'redeem:123:500', scope => 'loyalty', request_hash => '$hash'} . ($options // '') . ')';
}
my $redeem = 'INSERT INTO points VALUES (123, -500)';

row '4.14', 'checkAndAcquire(key, scope, hash): of eight at once one acquires', sub {
    given($points);
    my %answers;
    $answers{$_}++ for together(8, sub { by_hand('abc') });
    is_deeply(\%answers, { 'INSERT 0 1' => 1, 'INSERT 0 0' => 7 }, 'by hand one of eight');
    my ($ann, $ben) = sessions(2);
    given('TRUNCATE idempotency_record');
    $ann->ask('BEGIN; ' . by_hand('abc'));
    $ben->begins_to_wait(by_hand('abc'));
    $ann->ask('ROLLBACK');
    is($ben->answer, 'INSERT 0 1', 'by hand a duplicate waits for as long as the first one works');

    %answers = ();
    $answers{$_}++ for together(8, sub { claims('abc') });
    is_deeply(\%answers, { acquired => 1, in_progress => 7 }, 'by claims one of eight');
    $ann->ask('BEGIN');
    is($ann->ask(claims('abc', 'outcome', q{, stale_after => '1 s'}) =~ s/500/600/r), 'acquired', 'another key');
    is($ben->ask(claims('abc') =~ s/500/600/r), 'in_progress', 'by claims a duplicate is answered at once');
    $ann->ask('ROLLBACK');
};

row '4.15', 'a key with another request hash is an error of its client', sub {
    given($points);
    my ($ann, $ben) = sessions(2);
    $ann->ask(by_hand('abc'));
    is($ben->ask($record), 'PENDING|abc|', 'by hand every caller compares the hash, or forgets it');
    is($ann->ask(claims('abc')), 'acquired', 'a claim with the article\'s hash');
    is($ben->ask(claims('def')), 'mismatch', 'and with another');
    is($ben->ask(claims('abc')), 'in_progress', 'and with the same');
};

row '4.16', 'complete(key, scope, resultId): the duplicate gets the result', sub {
    given($points);
    my ($ann, $ben) = sessions(2);
    my $token = $ann->ask(claims('abc', 'token'));
    $ann->ask("BEGIN; $redeem");
    is($ann->ask(qq{SELECT interlock.idempotency_complete(key => 'redeem:123:500', scope => 'loyalty', token => $token, result_id => 'tx-9', response => '{"status": 201}', body => '\\x7b7d')}), 't',
        'effect and completion in one transaction');
    $ann->ask('COMMIT');
    is($ben->ask(claims('abc', 'outcome, result_id, response, body, has_response')), 'replay|tx-9|{"status": 201}|\x7b7d|t', 'which the next one gets, with status and body');
    is($ben->ask(q{SELECT status, result_id FROM interlock.idempotency_lookup('loyalty', 'redeem:123:500')}), 'completed|tx-9', 'a page can look without claiming');
    is(given('SELECT count(*) FROM points'), 1, 'redeemed once');
};

row '4.17', 'a PENDING key of a process that died is recovered by one', sub {
    given($points . q{INSERT INTO idempotency_record (key, scope, created_at) VALUES ('redeem:123:500', 'loyalty', now() - interval '10 min')});
    my @sessions = sessions(10);
    my @stale = map { $_->ask(q{SELECT key FROM idempotency_record WHERE status = 'PENDING' AND created_at < now() - interval '5 min'}) } @sessions;
    my %answers;
    $answers{ $_->ask(q{UPDATE idempotency_record SET created_at = now() WHERE key = 'redeem:123:500' AND scope = 'loyalty' AND status = 'PENDING'}) }++ for @sessions;
    is_deeply([ \%answers, \@stale ], [ { 'UPDATE 1' => 10 }, [ ('redeem:123:500') x 10 ] ], 'by hand all ten that have read it recover it');

    my $old = $sessions[0]->ask(claims('abc', 'token', q{, stale_after => '1 us'}));
    %answers = ();
    $answers{$_}++ for together(10, sub { claims('abc', 'outcome, attempt') });
    is($answers{'acquired|2'}, 1, 'by claims one of ten');
    is($sessions[0]->ask(qq{SELECT interlock.idempotency_complete('loyalty', 'redeem:123:500', $old)}), 'IL008', 'the process that was thought dead cannot complete it');
    is($sessions[0]->ask(qq{SELECT interlock.idempotency_release('loyalty', 'redeem:123:500', $old)}), 'f', 'nor give away the claim of its successor');
};

row '4.18', 'keys that are made of what they stand for', sub {
    is(given(q{SELECT interlock.idempotency_key('redeem', 123, 500)}), 'redeem:123:500', 'points');
    is(given(q{SELECT interlock.idempotency_key('wishlist', 123, 'mug')}), 'wishlist:123:mug', 'a wish list');
    is(given(q{SELECT interlock.idempotency_key('review', 123, 77::bigint)}), 'review:123:77', 'a review');
    is(given(q{SELECT interlock.idempotency_key('notify', 123, date '2026-05-03')}), 'notify:123:2026-05-03', 'a notification a day');
    is(given(q{SELECT interlock.idempotency_key('import', 'a:b') <> interlock.idempotency_key('import', 'a', 'b')}), 't', 'parts do not run together');
};

row '4.19', 'a key that is the hash of the input', sub {
    my $key = q{SELECT interlock.idempotency_key('generate', encode(interlock.idempotency_request_hash('%s'), 'hex'))};
    my $one = given(sprintf $key, '{"size": 10, "color": "blue"}');
    like($one, qr/^generate:[0-9a-f]{64}$/, 'a key');
    is(given(sprintf $key, '{"color": "blue", "size": 10.0}'), $one, 'equal input has the same');
    isnt(given(sprintf $key, '{"color": "blue", "size": 11}'), $one, 'other input has another');
    is(given(q{SELECT outcome FROM interlock.idempotency_claim('loyalty', 'file', request_hash => sha256('the bytes of a file'))}), 'acquired', 'of bytes, by the server\'s own function');
};

row '4.20', 'the model of an API and that of a job', sub {
    given($points . q{
        SELECT interlock.define_idempotency_scope('import', 'job', stale_after => '1 us');
        CREATE FUNCTION redeem(request jsonb) RETURNS jsonb LANGUAGE sql AS
            'INSERT INTO points VALUES ((request->>''user'')::int, -(request->>''points'')::int) RETURNING ''{"status": 201}''::jsonb'});
    my ($ann, $ben) = sessions(2);
    my $once = q{SELECT * FROM interlock.run_once('loyalty', 'redeem:123:500', 'redeem(jsonb)', '{"user": 123, "points": 500}')};
    is($ann->ask($once), 'completed|{"status": 201}', 'API: claim, effect and answer are one call');
    is($ben->ask($once), 'replay|{"status": 201}', 'and are replayed');
    my $token = $ann->ask(q{SELECT token FROM interlock.idempotency_claim('import', 'file 7', state => '{"path": "7.csv"}')});
    $ann->ask(qq{SELECT interlock.idempotency_checkpoint('import', 'file 7', $token, 'row 1000', '{"path": "7.csv", "rows": 1000}')});
    is($ben->ask(q{SELECT outcome, attempt, checkpoint, state FROM interlock.idempotency_claim('import', 'file 7')}),
        'acquired|2|row 1000|{"path": "7.csv", "rows": 1000}', 'job: the next one goes on where the last one was');
};

row '4.21', 'FAILED: tried again, final, or given up', sub {
    given($points . q{SELECT interlock.define_idempotency_scope('loyalty', max_attempts => 3)});
    my ($ann) = sessions(1);
    my $fail = q{SELECT interlock.idempotency_fail('loyalty', 'redeem:123:500', %s, '{"error": "%s"}', retryable => %s)};
    my @attempts;
    for (1 .. 5)
    {
        my ($outcome, $token) = split /\|/, $ann->ask(claims('abc', 'outcome, token'));
        push @attempts, $outcome;
        $ann->ask(sprintf $fail, $token, 'provider is down', 'true') if $outcome eq 'acquired';
    }
    is("@attempts", 'acquired acquired acquired exhausted exhausted', 'an error that may pass is tried again, as often as the scope says');
    is($ann->ask(claims('abc', 'attempt, response')), '3|{"error": "provider is down"}', 'with the last error');
    is($ann->ask(q{SELECT interlock.idempotency_forget('loyalty', 'redeem:123:500', 'the provider is up again')}), 't', 'an operator lets it be tried again');
    $ann->ask(sprintf $fail, $ann->ask(claims('abc', 'token')), 'not enough points', 'false');
    is($ann->ask(claims('abc', 'outcome, response')), 'failed|{"error": "not enough points"}', 'an error that stays is replayed');
};

row '1.13', 'a form is sent eight times: one effect, eight equal answers', sub {
    given(q{
        CREATE TABLE form (id int GENERATED ALWAYS AS IDENTITY, body text);
        CREATE FUNCTION submit(request jsonb) RETURNS jsonb LANGUAGE sql AS
            'INSERT INTO form (body) VALUES (request->>''body'') RETURNING jsonb_build_object(''id'', id)'});
    my $submit = q{SELECT response FROM interlock.run_once('form', 'user1:form5', 'submit(jsonb)', '{"body": "%s"}', wait => '1 min')};
    my %answers;
    $answers{$_}++ for together(8, sub { sprintf $submit, 'hello' });
    is_deeply(\%answers, { '{"id": 1}' => 8 }, 'eight clicks');
    is(given('SELECT count(*) FROM form'), 1, 'one row');
    my ($ann, $ben) = sessions(2);
    $ann->ask('BEGIN');
    is($ann->ask(sprintf($submit, 'first') =~ s/form5/form6/r), '{"id": 2}', 'another form');
    is($ben->ask((sprintf($submit, 'second') =~ s/form5/form6/r) =~ s/response/outcome/r), 'mismatch', 'with other contents under its key at the same time');
    $ann->ask('COMMIT');
};

row '1.14', 'an ordinary role needs a grant of the scope, and nothing else', sub {
    given(q{DROP ROLE IF EXISTS web; CREATE ROLE web});
    my ($web) = sessions(1);
    $web->ask('SET ROLE web');
    my $claim = q{SELECT outcome FROM interlock.idempotency_claim('form', 'user1:form7')};
    is($web->ask($claim), '42501', 'refused');
    given(q{SELECT interlock.grant_idempotency_scope('form', 'web')});
    is($web->ask($claim), 'acquired', 'granted');
    is($web->ask('SELECT * FROM interlock.idempotency'), '42501', 'which shows it no key of others');
    given(q{SELECT interlock.revoke_idempotency_scope('form', 'web')});
};

1;
