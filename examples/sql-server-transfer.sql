-- sp_TransferAmount, from SQL Server line by line: what stood there is beside each line. Money moves between two accounts, for one
-- transfer at a time of each account, and transfers in opposite directions do not deadlock.
CREATE EXTENSION IF NOT EXISTS pg_interlock;

CREATE TABLE Accounts (Id int PRIMARY KEY, Balance numeric(18, 2) NOT NULL CHECK (Balance >= 0));
INSERT INTO Accounts VALUES (9, 1000), (10, 1000);

CREATE FUNCTION AccountLock(Id int) RETURNS text LANGUAGE sql IMMUTABLE      -- 'Account:' + CAST(@Id AS NVARCHAR(10))
    AS $$SELECT 'Account:' || lpad(Id::text, 10, '0')$$;                     -- of one width: as text 10 sorts before 9

CREATE PROCEDURE sp_TransferAmount(FromAccountId int, ToAccountId int, Amount numeric) LANGUAGE plpgsql AS $$
DECLARE                                                                       -- SET XACT_ABORT ON: always so here
    FirstId int := least(FromAccountId, ToAccountId);                         -- DECLARE @FirstId INT = (SELECT MIN(Id) FROM ...)
    SecondId int := greatest(FromAccountId, ToAccountId);                     -- DECLARE @SecondId INT = (SELECT MAX(Id) FROM ...)
    Result int;                                                               -- DECLARE @Result INT
BEGIN                                                                         -- BEGIN TRY BEGIN TRANSACTION: CALL is one by itself
    IF coalesce(Amount <= 0, true) THEN                                       -- IF ISNULL(@Amount, 0) <= 0
        RAISE 'The amount has to be positive.' USING ERRCODE = '50001';       --     THROW 50001, 'The amount ...', 1;
    END IF;
    IF coalesce(FromAccountId = ToAccountId, true) THEN                       -- IF @FromAccountId = @ToAccountId
        RAISE 'Two accounts are needed.' USING ERRCODE = '50002';             --     THROW 50002, 'Two accounts ...', 1;
    END IF;

    Result := interlock.getapplock(resource => AccountLock(FirstId),          -- EXEC @Result = sp_getapplock @Resource = ...,
        lockmode => 'Exclusive', lockowner => 'Transaction',                  --     @LockMode = 'Exclusive', @LockOwner = 'Transaction',
        locktimeout => 5000);                                                 --     @LockTimeout = 5000;
    IF Result >= 0 THEN                                                       -- IF @Result >= 0
        Result := interlock.getapplock(AccountLock(SecondId), 'Exclusive', 'Transaction', 5000);    --     EXEC @Result = sp_getapplock ...
    END IF;
    IF Result < 0 THEN                                                        -- IF @Result < 0
        RAISE 'Could not lock both accounts: %.', Result                      --     THROW 50003, 'Could not lock ...', 1;
            USING ERRCODE = '50003';
    END IF;

    IF (SELECT count(*) FROM Accounts WHERE Id IN (FirstId, SecondId)) < 2 THEN     -- IF (SELECT COUNT(*) FROM Accounts WHERE ...) < 2
        RAISE 'There is no such account.' USING ERRCODE = '50004';            --     THROW 50004, 'There is no ...', 1;
    END IF;
    IF (SELECT Balance FROM Accounts WHERE Id = FromAccountId) < Amount THEN  -- IF (SELECT Balance FROM Accounts WHERE ...) < @Amount
        RAISE 'The balance is not sufficient.' USING ERRCODE = '50005';       --     THROW 50005, 'The balance ...', 1;
    END IF;
    UPDATE Accounts SET Balance = Balance - Amount WHERE Id = FromAccountId;  -- UPDATE Accounts SET Balance -= @Amount WHERE ...
    UPDATE Accounts SET Balance = Balance + Amount WHERE Id = ToAccountId;    -- UPDATE Accounts SET Balance += @Amount WHERE ...
END $$;                                                                       -- COMMIT END TRY; BEGIN CATCH ROLLBACK; THROW; END CATCH

CALL sp_TransferAmount(9, 10, 700);
SELECT Id, Balance FROM Accounts ORDER BY Id;
-- => 9 | 300.00
-- => 10 | 1700.00

-- What is raised rolls all of it back, and releases the locks.
CALL sp_TransferAmount(9, 10, 500);
-- => ERROR:  The balance is not sufficient.
CALL sp_TransferAmount(9, 10, -1);
-- => ERROR:  The amount has to be positive.
CALL sp_TransferAmount(9, 9, 1);
-- => ERROR:  Two accounts are needed.
CALL sp_TransferAmount(9, 11, 1);
-- => ERROR:  There is no such account.
SELECT count(*) FROM interlock.key_locks;
-- => 0

-- While somebody else has an account, the procedure waits for five seconds, and says -1 then. What it is to do first:
SELECT interlock.applock_test('public', AccountLock(9), 'Exclusive') AS is_free;
-- => 1

-- Tests run with this setting: a procedure that gets its resources in another order fails there, and does not deadlock later.
SET interlock.lock_order = 'error';
CALL sp_TransferAmount(10, 9, 700);
SELECT sum(Balance), min(Balance) FROM Accounts;
-- => 2000.00 | 1000.00
BEGIN;
SELECT interlock.getapplock('Account:9', 'Exclusive'), interlock.getapplock('Account:10', 'Exclusive');
-- => ERROR:  application lock "Account:10" is taken after application lock "Account:9"
ROLLBACK;
