#include "server/checked_file.h"

namespace interlock::inline server {

static bool is_whole(FILE* file, size_t least) {
    pg_crc32c sum;
    pg_crc32c written;
    long left =
        fseek(file, 0, SEEK_END) == 0 ? ftell(file) - static_cast<long>(sizeof(written)) : 0;
    rewind(file);
    if (left < static_cast<long>(least))
        return false;
    INIT_CRC32C(sum);
    char buffer[8192];
    while (left > 0) {
        size_t size = Min(static_cast<size_t>(left), sizeof(buffer));
        if (fread(buffer, size, 1, file) != 1)
            return false;
        COMP_CRC32C(sum, buffer, size);
        left -= static_cast<long>(size);
    }
    FIN_CRC32C(sum);
    bool well = fread(&written, sizeof(written), 1, file) == 1 && EQ_CRC32C(sum, written);
    rewind(file);
    return well;
}

void put(CheckedFile* file, const void* bytes, size_t size) {
    COMP_CRC32C(file->sum, bytes, size);
    file->well = file->well && fwrite(bytes, size, 1, file->file) == 1;
}

bool get(CheckedFile* file, void* bytes, size_t size) {
    file->well = file->well && fread(bytes, size, 1, file->file) == 1;
    return file->well;
}

bool write_checked_file(const char* name, void (*body)(CheckedFile* file)) {
    char new_name[MAXPGPATH];
    snprintf(new_name, sizeof(new_name), "%s.new", name);
    CheckedFile file = {AllocateFile(new_name, PG_BINARY_W), 0, true};
    if (file.file == nullptr) {
        ereport(LOG,
                (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", new_name)));
        return false;
    }
    INIT_CRC32C(file.sum);
    body(&file);
    pg_crc32c sum = file.sum;
    FIN_CRC32C(sum);
    put(&file, &sum, sizeof(sum));
    if (FreeFile(file.file) == 0 && file.well)
        return durable_rename(new_name, name, LOG) == 0;
    ereport(LOG, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", new_name)));
    unlink(new_name);
    return false;
}

void read_checked_file(const char* name, size_t least, void (*body)(CheckedFile* file)) {
    CheckedFile file = {AllocateFile(name, PG_BINARY_R), 0, true};
    if (file.file == nullptr)
        return;
    if (durable_unlink(name, LOG) == 0 && is_whole(file.file, least))
        body(&file);
    FreeFile(file.file);
}

bool was_shut_down(bool also_on_standby) {
    bool is_whole;
    ControlFileData* control = get_controlfile(DataDir, &is_whole);
    return is_whole && (control->state == DB_SHUTDOWNED ||
                        (also_on_standby && control->state == DB_SHUTDOWNED_IN_RECOVERY));
}

} // namespace interlock::inline server
