# A client that speaks the protocol itself: it can send a function call, send ahead and go without notice.

package Protocol;

use strict;
use warnings;
use Exporter 'import';
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start send_query send_call send_statement send_sync answer query);

# The only sockets that it knows are in the file system.
plan skip_all => 'needs sockets in the file system' unless $PostgreSQL::Test::Utils::use_unix_sockets;

# start(NODE [, DATABASE]): a session in that database, or in "postgres": its socket, the pid of its process, of its last answer
# the SQLSTATE, message, detail and hint of an error, the warnings as SQLSTATE and message, the rows and the command tag, and the
# payloads of all notifications.
sub start
{
    my ($node, $database) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "cannot connect: $!";
    my $options = join("\0", user => scalar(getpwuid($<)), database => $database // 'postgres') . "\0\0";
    my $session = { socket => $socket };
    $socket->print(pack('N N', 8 + length $options, 196608) . $options);
    $socket->flush;
    answer($session);
    return $session;
}

sub send_message
{
    my ($session, $type, $body) = @_;
    $session->{socket}->print($type . pack('N', 4 + length $body) . $body);
    $session->{socket}->flush;
    return;
}

sub send_query { my ($session, $sql) = @_; send_message($session, 'Q', "$sql\0"); return; }

# send_call(SESSION, OID, VALUE...): a function call with values as text, or null.
sub send_call
{
    my ($session, $function, @values) = @_;
    my $values = join('', map { defined $_ ? pack('N/a*', $_) : pack('N', 0xFFFFFFFF) } @values);
    send_message($session, 'F', pack('N n n', $function, 0, scalar @values) . $values . pack('n', 0));
    return;
}

# send_statement(SESSION, SQL, VALUE...): parses, binds and runs a statement in the unnamed portal, with untyped parameters as text.
# answer() returns after send_sync(): before it, more statements make a pipeline.
sub send_statement
{
    my ($session, $sql, @values) = @_;
    send_message($session, 'P', "\0$sql\0" . pack('n', 0));
    send_message($session, 'B', "\0\0" . pack('n n', 0, scalar @values) . join('', map { pack('N/a*', $_) } @values) . pack('n', 0));
    send_message($session, 'E', "\0" . pack('N', 0));
    return;
}

sub send_sync { send_message($_[0], 'S', ''); return; }

sub receive
{
    my ($session, $wanted) = @_;
    my $bytes = '';
    local $SIG{ALRM} = sub { die 'no answer' };
    alarm $PostgreSQL::Test::Utils::timeout_default;
    while (length $bytes < $wanted)
    {
        read($session->{socket}, $bytes, $wanted - length $bytes, length $bytes) or die 'the server has gone';
    }
    alarm 0;
    return $bytes;
}

# What came until the server was ready again: the SQLSTATE of an error, else the last value, of a row's first column or
# of a function.
sub answer
{
    my ($session) = @_;
    my $value;
    @$session{qw(error message detail hint tag rows warnings)} = (undef, undef, undef, undef, undef, [], []);
    delete $session->{coming};
    while (1)
    {
        my ($type, $length) = unpack('a N', receive($session, 5));
        my $body = receive($session, $length - 4);
        $session->{pid} = unpack('N', $body) if $type eq 'K';
        @$session{qw(error message detail hint)} = map { $body =~ /(?:^|\0)$_([^\0]*)/ ? $1 : undef } qw(C M D H) if $type eq 'E';
        push @{ $session->{warnings} }, join(' ', map { $body =~ /(?:^|\0)$_([^\0]*)/ ? $1 : '' } qw(C M)) if $type eq 'N';
        @$session{qw(tag rows)} = (unpack('Z*', $body), delete $session->{coming} // []) if $type eq 'C';
        push @{ $session->{notifications} }, (unpack('N Z* Z*', $body))[2] if $type eq 'A';
        push @{ $session->{coming} }, columns($body) if $type eq 'D';
        $value = value($body) if $type eq 'V';
        $value = value(substr($body, 2)) if $type eq 'D';
        return $session->{error} // $value if $type eq 'Z';
    }
}

sub value { my ($length) = unpack('l>', $_[0]); return $length < 0 ? undef : substr($_[0], 4, $length); }

# The values of a row.
sub columns
{
    my ($count, $rest) = unpack('n a*', $_[0]);
    my @values;
    for (1 .. $count)
    {
        my $value = value($rest);
        push @values, $value;
        $rest = substr($rest, 4 + length($value // ''));
    }
    return \@values;
}

sub query { my ($session, $sql) = @_; send_query($session, $sql); return answer($session); }

1;
